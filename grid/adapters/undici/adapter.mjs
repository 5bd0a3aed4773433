// undici's RetryAgent round an Agent. Operations that may be repeated anyway have a RetryAgent of
// their own over the same Agent.

import {load, run, version} from '../_node/loop.mjs';

const {Agent, Client, RetryAgent} = await load('undici');

function make(op) {
	const timeout = op.number('attempt_timeout_ms');
	const agent = new Agent({
		connect: {ca: op.ca},
		allowH2: op.fields.http === '2',
		// A pool does not hand `useH2c` on to its connections.
		...(op.fields.http === 'h2c' && {factory: origin => new Client(origin, {useH2c: true, allowH2: true})}),
		...(timeout && {headersTimeout: timeout, bodyTimeout: timeout}),
	});
	const options = {
		maxRetries: op.retries,
		minTimeout: op.number('base_ms', 500),
		maxTimeout: op.number('retry_after_max_ms', 30_000),
		timeoutFactor: op.number('factor', 2),
	};
	return {
		plain: new RetryAgent(agent, options),
		repeatable: new RetryAgent(agent, {...options, methods: ['POST', 'PATCH', 'PUT', 'GET', 'DELETE']}),
	};
}

async function send(client, op) {
	const url = new URL(op.url);
	const response = await client[op.repeatable ? 'repeatable' : 'plain'].request({
		origin: url.origin,
		path: url.pathname + url.search,
		method: op.method,
		headers: op.headers,
		body: op.body,
		signal: op.signal,
	});
	return {status: response.statusCode, body: await response.body.arrayBuffer()};
}

run('undici', version('undici'), make, send);
