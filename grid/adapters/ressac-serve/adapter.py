#!/usr/bin/env -S python3 -IS
"""`ressac serve`: each operation is a message, its result is what the gateway says became of it.

RESSAC is the binary to run; without it, the one on the path.

A client instance is a partner. Its messages with a key go to a second partner of the same address
that is said to honour keys. Partners stand in the configuration, so there is one gateway for the
instances that most cases have, and one more for each set of instances, or version of HTTP, that a
case needs besides.
"""

import concurrent.futures
import datetime
import hashlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "_python"))
import loop

# The instances that one gateway has as its partners; any other instance has a gateway of its own.
SETS = [
    ("few", ["one", "z", *(f"c{n}" for n in range(1, 25))]),
    ("more", [f"c{n}" for n in range(25, 101)]),
    ("many", [f"c{n}" for n in range(101, 451)]),
]
# What an operation speaks, as `http_version` has it.
HTTP = {"1.1": "1.1", "2": "2", "h2c": "2"}
VENDOR = ["retry-after-ms", "x-ms-retry-after-ms", "RateLimit", "RateLimit-Reset",
          "X-RateLimit-Reset"]
# The history keeps so much of a reply's body.
EXCERPT = 4096


def say(line):
    text = json.dumps({name: value for name, value in line.items() if value is not None})
    os.write(1, (text + "\n").encode())


def table(text):
    """`ratio=0.1,window=10s` as an inline table of TOML."""
    def value(said):
        try:
            return str(float(said)) if "." in said else str(int(said))
        except ValueError:
            return f'"{said}"'
    pairs = (pair.split("=", 1) for pair in text.split(","))
    return "{ " + ", ".join(f"{name} = {value(said)}" for name, said in pairs) + " }"


def policy(told):
    """The policy of the run, as a durable one."""
    def duration(name):
        return f'"{round(float(told[name]))}ms"' if told.get(name) else None

    base, cap = duration("base_ms") or '"2s"', duration("cap_ms") or '"10m"'
    budget = told.get("budget") or "off"
    # A message waits for a token as long as its window lasts; where a case is about the budget
    # there has to be an end to see, and what waits must not spend what the calm brings in.
    window = '"60s"' if budget == "off" else '"2s"'
    settings = {
        "mode": '"durable"',
        "retries": int(told["attempts"]) - 1 if told.get("attempts") else None,
        "base": base,
        "cap": cap,
        "factor": told.get("factor"),
        "jitter": f'"{told["jitter"]}"' if told.get("jitter") else None,
        "window": duration("deadline_ms") or window,
        "attempt_timeout": duration("attempt_timeout_ms"),
        "retry_after": f"{{ vendor = {json.dumps(VENDOR)} }}",
        "budget": '"off"' if budget == "off" else table(budget),
        # No breaker, since nothing opens it; but a hold is probed and drained by these numbers,
        # which must not explain a wait.
        "breaker": '{ failure_rate = "off", consecutive = "off", '
                   f'open = {base}, open_max = {cap}, ramp_start = "1000/s" }}',
        "limit": '{ concurrency = "off" }',
    }
    return [f"{name} = {said}" for name, said in settings.items() if said is not None]


class Gateway:
    """A gateway and its partners, and the operations that it was handed."""

    def __init__(self, name, partners, op, told, state):
        self.name, self.open, self.cancelled = name, {}, set()
        self.lock, self.news, self.local = threading.Lock(), threading.Event(), threading.local()
        origin = urllib.parse.urlsplit(op.url)
        lines = ["[policy.prove]", *policy(told), "[gateway]", 'listen = "127.0.0.1:0"',
                 f'store = "sqlite:{name}.db"', 'stop_timeout = "500ms"']
        for partner in partners:
            lines += [f"[partner.{partner}]", 'policy = "prove"',
                      f'url = "{origin.scheme}://{origin.netloc}"',
                      f'http_version = "{HTTP[op.http]}"']
            if op.ca_file:
                lines.append(f"ca_file = {json.dumps(op.ca_file)}")
            if name.startswith("keyed"):
                lines.append('idempotency = { header = "Idempotency-Key" }')
        none = os.path.join(state, "no-certificates")
        os.makedirs(none, exist_ok=True)
        file = os.path.join(state, f"{name}.toml")
        with open(file, "w") as out:
            out.write("\n".join(lines) + "\n")
        self.process = subprocess.Popen(
            [os.environ.get("RESSAC", "ressac"), "serve", "--log", "warn", file],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            # No authority of this machine vouches for the suite, and each partner reads them all.
            env={**os.environ, "SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": none},
        )
        self.address = self.listening()
        threading.Thread(target=self.echo, daemon=True).start()
        while self.call("GET", "/readyz")[0] != 200:
            time.sleep(0.005)
        threading.Thread(target=self.watch, daemon=True).start()

    def listening(self):
        for line in self.process.stderr:
            sys.stderr.write(line)
            if "listens on http://" in line:
                return line.split("http://")[1].strip()
        raise RuntimeError("the gateway does not start")

    def echo(self):
        for line in self.process.stderr:
            sys.stderr.write(line)

    def call(self, method, path, headers=(), body=None):
        """One request to the gateway, on a connection of the thread."""
        line, used = getattr(self.local, "line", (None, 0.0))
        if line is None or time.monotonic() > used + 2.0:
            line = http.client.HTTPConnection(self.address, timeout=30)
        self.local.line = line, time.monotonic()
        line.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers:
            line.putheader(name, value)
        chunked = body is not None and not isinstance(body, bytes)
        if chunked:
            line.putheader("Transfer-Encoding", "chunked")
        elif body is not None or method == "POST":
            line.putheader("Content-Length", str(len(body or b"")))
        line.endheaders(body, encode_chunked=chunked)
        answer = line.getresponse()
        said = answer.read()
        is_json = "json" in answer.headers.get("Content-Type", "")
        return answer.status, json.loads(said) if is_json else said

    def hand_over(self, op, partner, read_at):
        """The operation becomes a message; answers with its id."""
        url = urllib.parse.urlsplit(op.url)
        path = url.path + (f"?{url.query}" if url.query else "")
        headers = [("Ressac-Method", op.method), ("Ressac-Path", path), *op.headers]
        if deadline := op.seconds("deadline_ms", 0.0):
            until = datetime.datetime.fromtimestamp(read_at + deadline, datetime.timezone.utc)
            headers.append(("Ressac-Deliver-By", until.isoformat(timespec="milliseconds")))
        path = f"/v1/partners/{partner}/messages"
        status, said = self.call("POST", path, headers, op.body())
        if status != 202:
            raise RuntimeError(f"not accepted: {status} {said.get('detail') or said}")
        return said["id"]

    def follow(self, op, message):
        with self.lock:
            self.open[message] = op
        self.news.set()

    def watch(self):
        """Looks at the messages, one by one or at many in one page, until they have ended."""
        while True:
            self.news.wait()
            with self.lock:
                now = list(self.open)
                if not now:
                    self.news.clear()
            begun, many = time.monotonic(), len(now) > 8
            if many:
                page = self.call("GET", "/v1/messages?limit=1000")[1]["messages"]
                ended = {m["id"] for m in page if m["state"] in ("delivered", "dead")}
                now = [message for message in now if message in ended]
            for message in now:
                record = self.call("GET", f"/v1/messages/{message}")[1]
                if record["state"] in ("delivered", "dead"):
                    with self.lock:
                        op = self.open.pop(message)
                    say(self.result(op, record))
            # Looking must take nothing from the delivering.
            least = 0.05 if many else 0.005
            time.sleep(max(least, 4 * (time.monotonic() - begun)))

    def result(self, op, record):
        last = record["history"][-1] if record["history"] else {}
        reason = record.get("reason")
        if reason == "discarded" and op.op in self.cancelled:
            # Who cancels a message discards it: the API has one word for callers and operators.
            reason = "cancelled"
        keyed = self.name.startswith("keyed")
        result = {
            "op": op.op, "ok": record["state"] == "delivered", "status": last.get("status"),
            "attempts": record["attempts"], "reason": reason, "hint_ms": last.get("hint_ms"),
            "processed": record.get("processed"), "key": record["key"] if keyed else None,
        }
        if not result["ok"]:
            note = last.get("note") or last.get("outcome") or ""
            result["error"] = f"{note}; processed: {record.get('processed')}"
            return result
        _, _, body = last.get("reply", "").partition("\n\n")
        body = body.encode()
        if len(body) < EXCERPT and "\ufffd".encode() not in body:
            result |= {"body_len": len(body), "body_sha256": hashlib.sha256(body).hexdigest()}
        return result

    def cancel(self, op_id):
        with self.lock:
            found = [message for message, op in self.open.items() if op.op == op_id]
        self.cancelled.add(op_id)
        for message in found:
            self.call("POST", f"/v1/messages/{message}/discard")

    def stop(self, told=False):
        """`told`: it had the same signal, and a second one would cut it short."""
        try:
            if not told:
                self.process.terminate()
            self.process.wait(0.8)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Adapter:
    def __init__(self):
        self.told, self.gateways, self.starting = {}, {}, threading.Lock()
        self.accepted = {}
        self.workers = concurrent.futures.ThreadPoolExecutor(16)
        self.remembering = threading.Lock()

    @property
    def state(self):
        return self.told.get("state_dir") or os.environ["PROVE_STATE_DIR"]

    def gateway(self, op):
        """The gateway that has the operation's instance as a partner, started if need be."""
        kind = "plain" if op.fields.get("key_mode") in (None, "none") else "keyed"
        own = (f"only-{op.client}", [op.client])
        which, partners = next((s for s in SETS if op.client in s[1]), own)
        name = f"{kind}-{which}" + ("" if op.http == "1.1" else f"-{op.http}")
        with self.starting:
            if name not in self.gateways:
                self.gateways[name] = Gateway(name, partners, op, self.told, self.state)
            return self.gateways[name]

    def earlier(self):
        """The messages that an earlier process was given, by the URL of their operation.

        Read before this one writes any: a line is not always written in one piece."""
        try:
            with open(os.path.join(self.state, "accepted")) as file:
                return dict(line.split() for line in file if line.endswith("\n"))
        except FileNotFoundError:
            return {}

    def remember(self, op, message):
        with self.remembering, open(os.path.join(self.state, "accepted"), "a") as file:
            file.write(f"{op.url} {message}\n")

    def begin(self, op, read_at):
        try:
            gateway = self.gateway(op)
            message = self.accepted.get(op.url)
            if not message:
                message = gateway.hand_over(op, op.client, read_at)
                self.remember(op, message)
            gateway.follow(op, message)
        except Exception as error:
            say({"op": op.op, "ok": False, "error": f"{type(error).__name__}: {error}"[:300]})

    def run(self):
        version = subprocess.run([os.environ.get("RESSAC", "ressac"), "--version"],
                                 capture_output=True, text=True).stdout.split()[-1:]
        for line in sys.stdin:
            fields = json.loads(line)
            if "hello" in fields:
                self.told = fields
                self.accepted = self.earlier()
                say({"ready": 1, "name": "ressac serve", "version": "".join(version)})
            elif "cancel" in fields:
                for gateway in list(self.gateways.values()):
                    self.workers.submit(gateway.cancel, fields["cancel"])
            elif "op" in fields:
                op = loop.Op({**self.told, **fields})
                self.workers.submit(self.begin, op, time.time())
        self.workers.shutdown()
        while any(gateway.open for gateway in self.gateways.values()):
            time.sleep(0.01)
        self.stop()

    def stop(self, told=False):
        gateways = list(self.gateways.values())
        if not told:
            for gateway in gateways:
                gateway.process.terminate()
        for gateway in gateways:
            gateway.stop(told=True)


def main():
    adapter = Adapter()

    def ended(*_):
        adapter.stop(told=True)
        os._exit(143)

    signal.signal(signal.SIGTERM, ended)
    adapter.run()


main()
