// ky with its retry options, over the fetch of Node.

import {load, run, version} from '../_node/loop.mjs';

const {default: ky} = await load('ky');

async function send(_client, op) {
	const base = op.number('base_ms', 300);
	const factor = op.number('factor', 2);
	const response = await ky(op.url, {
		method: op.method,
		headers: op.headers,
		body: op.body,
		signal: op.signal,
		timeout: op.number('attempt_timeout_ms', false),
		retry: {
			limit: op.retries,
			...(op.repeatable && {methods: [op.method.toLowerCase()]}),
			delay: count => base * factor ** (count - 1),
			backoffLimit: op.number('cap_ms', 30_000),
			jitter: true,
			retryOnTimeout: true,
			maxRetryAfter: op.number('retry_after_max_ms'),
		},
	});
	return {status: response.status, body: await response.arrayBuffer()};
}

run('ky', `${version('ky')} node ${process.versions.node}`, () => undefined, send);
