// axios with axios-retry and its exponentialDelay.

import https from 'node:https';
import {load, run, version} from '../_node/loop.mjs';

const {default: axios} = await load('axios');
const {default: axiosRetry, isNetworkOrIdempotentRequestError, isRetryableError, exponentialDelay} =
	await load('axios-retry');

function make(op) {
	const client = axios.create({
		httpsAgent: new https.Agent({keepAlive: true, ca: op.ca}),
		responseType: 'arraybuffer',
		maxBodyLength: Infinity,
		proxy: false,
	});
	axiosRetry(client, {shouldResetTimeout: true});
	return client;
}

async function send(client, op) {
	// Its formula doubles before the first retry, so that the first wait is twice the factor.
	const factor = op.number('base_ms', 200) / 2;
	let retries = 0;
	const streamed = op.fields.body_mode === 'stream';
	const response = await client.request({
		url: op.url,
		method: op.method,
		headers: op.headers,
		data: op.body,
		signal: op.signal,
		timeout: op.number('attempt_timeout_ms', 0),
		...(streamed && {maxRedirects: 0}), // as axios asks of streams
		'axios-retry': {
			retries: op.retries,
			retryDelay: (count, error) => exponentialDelay(count, error, factor),
			retryCondition: op.repeatable ? isRetryableError : isNetworkOrIdempotentRequestError,
			onRetry: () => { retries++; },
		},
	});
	return {status: response.status, body: response.data, attempts: retries + 1};
}

run('axios-retry', `${version('axios-retry')} axios ${version('axios')}`, make, send);
