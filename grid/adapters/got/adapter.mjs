// got with its retry options.

import {load, run, version} from '../_node/loop.mjs';

const {default: got} = await load('got');
const METHODS = ['GET', 'PUT', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'];

function make(op) {
	return got.extend({
		http2: op.fields.http === '2',
		https: {certificateAuthority: op.ca},
		responseType: 'buffer',
	});
}

async function send(client, op) {
	const response = await client(op.url, {
		method: op.method,
		headers: op.headers,
		body: op.body,
		signal: op.signal,
		timeout: {request: op.number('attempt_timeout_ms')},
		retry: {
			limit: op.retries,
			methods: op.repeatable ? [...METHODS, op.method] : METHODS,
			backoffLimit: op.number('cap_ms', Infinity),
			maxRetryAfter: op.number('retry_after_max_ms'),
		},
	});
	return {status: response.statusCode, body: response.rawBody, attempts: response.retryCount + 1};
}

run('got', version('got'), make, send);
