// A retrying fetch, and its adapter for `ressac prove`: node client.mjs
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

// ------------------------------------------------------------- the client

const RETRYABLE = new Set([429, 502, 503, 504]);
const IDEMPOTENT = new Set(["GET", "HEAD", "PUT", "DELETE"]);
const sleep = (ms) => new Promise((done) => setTimeout(done, Math.min(ms, 2 ** 31 - 1)));

function hint(headers) {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^[0-9]+$/.test(value)) return Number(value) * 1000;
  if (!/^[A-Z][a-z]+[, ].* [0-9:]{8}.*$/.test(value)) return null;
  const at = Date.parse(value.endsWith("GMT") ? value : `${value} GMT`);
  const sent = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(at) ? null : Math.max(0, at - (Number.isNaN(sent) ? Date.now() : sent));
}

async function send(op, pace) {
  const attempts = pace.attempts ?? 4;
  const [base, cap] = [pace.base_ms ?? 500, pace.cap_ms ?? 30_000];
  const headers = [...(op.headers ?? [])];
  if (op.key) headers.push(["Idempotency-Key", op.key]);
  const body = op.body_file ? await readFile(op.body_file) : undefined;
  const repeatable = IDEMPOTENT.has(op.method) || op.safe === "1" || Boolean(op.key);
  for (let attempt = 1; ; attempt++) {
    let wanted = null;
    let again = repeatable;
    let result = { ok: false, attempts: attempt };
    try {
      const reply = await fetch(op.url, { method: op.method, headers, body, redirect: "manual" });
      const data = Buffer.from(await reply.arrayBuffer());
      result = {
        ok: reply.ok,
        status: reply.status,
        attempts: attempt,
        body_len: data.length,
        body_sha256: createHash("sha256").update(data).digest("hex"),
      };
      if (reply.ok) return result;
      again = again && RETRYABLE.has(reply.status);
      wanted = hint(reply.headers);
    } catch (error) {
      result.error = String(error.cause ?? error);
    }
    if (!again || attempt >= attempts) return result;
    const ceiling = Math.min(cap, base * 2 ** (attempt - 1));
    const drawn = Math.random() * Math.max(ceiling, wanted ?? 0);
    await sleep((wanted ?? 0) + drawn);
  }
}

// ------------------------------------------------------------ the adapter

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
let pace = {};
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const told = JSON.parse(line);
  if (told.hello) {
    pace = told;
    say({ ready: 1, name: "fetch-example", version: process.version });
  } else if (told.op) {
    send(told, pace)
      .catch((error) => ({ ok: false, error: String(error) }))
      .then((result) => say({ op: told.op, ...result }));
  }
});
lines.on("close", () => setTimeout(() => process.exit(0), 500));
