"""The loop that every Python adapter shares: operations come in as lines, results go out as lines.

An adapter gives `run` a function that makes a client from the policy and one that sends an
operation with it. Each operation has a thread of its own, so that all may wait at once.
"""

import hashlib
import json
import sys
import threading


class Op:
    """One operation, with the policy of the run where it says nothing itself."""

    def __init__(self, fields):
        self.fields = fields
        self.op = fields["op"]
        self.client = fields.get("client") or self.op
        self.url = fields.get("url")
        self.method = fields.get("method") or "GET"
        self.key = fields.get("key") if fields.get("key_mode") == "given" else None
        self.safe = str(fields.get("safe", "")) in ("1", "True", "true")
        self.http = str(fields.get("http") or "1.1")
        self.ca_file = fields.get("ca_file")
        self.stream = fields.get("body_mode") == "stream"

    def number(self, name, default):
        """A setting as a number, or the library's own value."""
        value = self.fields.get(name)
        return default if value in (None, "") else type(default)(float(value))

    def seconds(self, name, default):
        """A setting in milliseconds, as seconds."""
        value = self.fields.get(name)
        return default if value in (None, "") else float(value) / 1000.0

    @property
    def headers(self):
        """The headers of every attempt, the key among them."""
        pairs = self.fields.get("headers") or []
        pairs = json.loads(pairs) if isinstance(pairs, str) else pairs
        return [*map(tuple, pairs), *([("Idempotency-Key", self.key)] if self.key else [])]

    def body(self):
        """The body: bytes, or, where it can be read once only, a generator."""
        path = self.fields.get("body_file")
        if not path:
            return None
        if self.stream:
            return _pieces(path)
        with open(path, "rb") as file:
            return file.read()


def _pieces(path):
    with open(path, "rb") as file:
        while piece := file.read(16384):
            yield piece


_print = threading.Lock()


def _say(line):
    text = json.dumps({k: v for k, v in line.items() if v is not None})
    with _print:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _work(op, client, make, send):
    result = {"op": op.op, "ok": False}
    try:
        status, body, *more = send(client.inner(make, op), op)
        result |= {"ok": 200 <= status < 300, "status": status, "key": op.key}
        result |= {"attempts": more[0] if more else None, "body_len": len(body)}
        result["body_sha256"] = hashlib.sha256(body).hexdigest()
    except Exception as error:  # whatever the library throws is the result
        result |= {"error": f"{type(error).__name__}: {error}"[:300], "key": op.key}
        response = getattr(error, "response", None)
        result["status"] = getattr(response, "status_code", None)
    _say(result)


class _Client:
    """A client instance: made by its first operation, closed after its last."""

    def __init__(self):
        self.made, self.running, self.ended = None, 0, False
        self.making = threading.Lock()

    def inner(self, make, op):
        """The library's client. Making one can take long, and must not keep lines from being read."""
        with self.making:
            self.made = self.made or make(op)
        return self.made

    def close_if_done(self):
        if self.ended and not self.running and hasattr(self.made, "close"):
            self.made.close()


def run(name, version, make, send):
    """Reads lines until the end of input, then waits for what is under way."""
    threading.stack_size(512 * 1024)
    policy, clients, lock = {}, {}, threading.Lock()

    def one(op, client):
        _work(op, client, make, send)
        with lock:
            client.running -= 1
            client.close_if_done()

    for line in sys.stdin:
        fields = json.loads(line)
        if "hello" in fields:
            policy = fields
            _say({"ready": 1, "name": name, "version": version})
        elif "end" in fields:
            with lock:
                client = clients.pop(fields["end"], None)
                if client:
                    client.ended = True
                    client.close_if_done()
        elif "op" in fields:
            op = Op({**policy, **fields})
            with lock:
                client = clients.setdefault(op.client, _Client())
                client.running += 1
            threading.Thread(target=one, args=(op, client)).start()
