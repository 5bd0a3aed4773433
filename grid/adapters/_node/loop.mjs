// The loop that every JavaScript adapter shares: operations come in as lines, results go out as
// lines. An adapter gives `run` a function that makes a client from the policy and one that sends
// an operation with it; all run at once on the event loop.

import {createHash} from 'node:crypto';
import {createReadStream, readFileSync} from 'node:fs';
import {createInterface} from 'node:readline';

// Packages say their version in a file that they do not always export.
export const version = name =>
	JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;

// From here, so that the adapters share one node_modules.
export const load = name => import(name);

// An operation, with the policy of the run where it says nothing itself.
class Op {
	constructor(fields, signal) {
		this.fields = fields;
		this.method = fields.method ?? 'GET';
		this.url = fields.url;
		this.key = fields.key_mode === 'given' ? fields.key : undefined;
		this.safe = ['1', 'true'].includes(String(fields.safe));
		this.repeatable = this.safe || this.key !== undefined;
		this.ca = fields.ca_file && readFileSync(fields.ca_file);
		const deadline = this.number('deadline_ms');
		this.signal = deadline ? AbortSignal.any([signal, AbortSignal.timeout(deadline)]) : signal;
	}

	// A setting, or the library's own value.
	number(name, otherwise) {
		const value = this.fields[name];
		return value === undefined || value === '' ? otherwise : Number(value);
	}

	get retries() {
		return this.number('attempts', 4) - 1;
	}

	// The headers of every attempt, the key among them.
	get headers() {
		const given = this.fields.headers ?? [];
		const pairs = typeof given === 'string' ? JSON.parse(given) : given;
		return Object.fromEntries(this.key ? [...pairs, ['Idempotency-Key', this.key]] : pairs);
	}

	// The body: bytes, or, where it can be read once only, a stream.
	get body() {
		const {body_file: path, body_mode: mode} = this.fields;
		if (!path) return undefined;
		return mode === 'stream' ? createReadStream(path) : readFileSync(path);
	}
}

const say = line => process.stdout.write(JSON.stringify(line) + '\n');

async function work(id, op, client, send) {
	const result = {op: id, ok: false, key: op.key};
	try {
		const {status, body, attempts} = await send(client, op);
		const bytes = Buffer.from(body ?? '');
		result.ok = status >= 200 && status < 300;
		Object.assign(result, {status, attempts, body_len: bytes.length});
		result.body_sha256 = createHash('sha256').update(bytes).digest('hex');
	} catch (error) {
		result.status = error?.response?.status ?? error?.response?.statusCode ?? error?.statusCode;
		result.error = `${error?.name}: ${error?.message} ${error?.cause?.code ?? ''}`.slice(0, 300);
	}
	say(result);
}

export async function run(name, release, make, send) {
	let policy = {};
	const clients = new Map();
	const cancels = new Map();
	const running = new Set();
	for await (const line of createInterface({input: process.stdin})) {
		const fields = JSON.parse(line);
		if (fields.hello) {
			policy = fields;
			say({ready: 1, name, version: release});
		} else if (fields.cancel) {
			cancels.get(fields.cancel)?.abort();
		} else if (fields.end) {
			clients.delete(fields.end);
		} else if (fields.op) {
			const cancel = new AbortController();
			const op = new Op({...policy, ...fields}, cancel.signal);
			const id = fields.client ?? fields.op;
			if (!clients.has(id)) clients.set(id, make(op));
			cancels.set(fields.op, cancel);
			const done = work(fields.op, op, clients.get(id), send).finally(() => {
				cancels.delete(fields.op);
				running.delete(done);
			});
			running.add(done);
		}
	}
	await Promise.all(running);
	process.exit(0); // pooled connections would keep it alive
}
