// p-retry round fetch, with the rules of its documentation: a 404 ends it, another bad status
// throws and is repeated. It knows no methods.

import {load, run, version} from '../_node/loop.mjs';

const {default: pRetry, AbortError} = await load('p-retry');

async function send(_client, op) {
	const body = op.body;
	const duplex = op.fields.body_mode === 'stream' ? {duplex: 'half'} : {};
	let status;
	const attempt = async () => {
		const response = await fetch(op.url, {
			method: op.method, headers: op.headers, body, signal: op.signal, ...duplex,
		});
		({status} = response);
		if (status === 404) throw new AbortError(response.statusText);
		if (!response.ok) throw new Error(response.statusText);
		return response.arrayBuffer();
	};
	try {
		const bytes = await pRetry(attempt, {
			retries: op.retries,
			minTimeout: op.number('base_ms', 1000),
			maxTimeout: op.number('cap_ms', 60_000),
			factor: op.number('factor', 2),
			randomize: true,
			signal: op.signal,
		});
		return {status, body: bytes};
	} catch (error) {
		throw Object.assign(error, {statusCode: status});
	}
}

run('p-retry', `${version('p-retry')} node ${process.versions.node}`, () => undefined, send);
