#!/usr/bin/env python3
"""A small retrying client of the standard library, and its adapter for `ressac prove`.

The upper half is the client: put your own in its place. The lower half reads operations as lines,
runs each in a thread and prints a result; it is the same for every client.
"""
import email.utils
import hashlib
import http.client
import json
import random
import sys
import threading
import time
import urllib.error
import urllib.request

# ---------------------------------------------------------------- the client

RETRYABLE = {429, 502, 503, 504}
IDEMPOTENT = {"GET", "HEAD", "PUT", "DELETE"}


def hint(headers):
    """Seconds that Retry-After asks for, or None where it is absent or malformed."""
    value = (headers.get("Retry-After") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    when = email.utils.parsedate_to_datetime(value) if "GMT" in value or ":" in value else None
    if when is None:
        return None
    sent = headers.get("Date")
    now = email.utils.parsedate_to_datetime(sent).timestamp() if sent else time.time()
    if when.tzinfo is None:
        when = when.replace(tzinfo=__import__("datetime").timezone.utc)
    return max(0.0, when.timestamp() - now)


def send(op, pace):
    attempts = int(pace.get("attempts", 4))
    base = pace.get("base_ms", 500) / 1000
    cap = pace.get("cap_ms", 30_000) / 1000
    headers = {name: value for name, value in op.get("headers", [])}
    if op.get("key"):
        headers["Idempotency-Key"] = op["key"]
    body = open(op["body_file"], "rb").read() if op.get("body_file") else None
    if body is not None:
        headers.setdefault("Content-Type", "application/octet-stream")
    repeatable = op["method"] in IDEMPOTENT or op.get("safe") == "1" or bool(op.get("key"))
    for attempt in range(1, attempts + 1):
        wanted, result = None, {"ok": False, "attempts": attempt}
        again = repeatable
        request = urllib.request.Request(op["url"], data=body, headers=headers, method=op["method"])
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                data = reply.read()
                return {
                    "ok": True,
                    "status": reply.status,
                    "attempts": attempt,
                    "body_len": len(data),
                    "body_sha256": hashlib.sha256(data).hexdigest(),
                }
        except urllib.error.HTTPError as error:
            result["status"] = error.code
            again = again and error.code in RETRYABLE
            try:
                wanted = hint(error.headers)
            except (TypeError, ValueError):
                wanted = None
        except (OSError, http.client.HTTPException) as error:
            result["error"] = repr(error)
        if not again or attempt == attempts:
            return result
        ceiling = min(cap, base * 2 ** (attempt - 1))
        wait = random.uniform(0, ceiling)
        if wanted is not None:
            # On top of the hint, so that clients told the same do not come back together.
            wait = wanted + random.uniform(0, max(ceiling, wanted))
        # No sleep of any size is a crash: a day is as good as for ever here.
        time.sleep(min(wait, 86_400))


# --------------------------------------------------------------- the adapter

lock = threading.Lock()


def say(line):
    with lock:
        print(json.dumps(line), flush=True)


def run(op, pace):
    try:
        result = send(op, pace)
    except Exception as error:  # a bug of the client is a failed operation, not a dead adapter
        result = {"ok": False, "error": repr(error)}
    say({"op": op["op"], **result})


def main():
    pace = {}
    for line in sys.stdin:
        told = json.loads(line)
        if "hello" in told:
            pace = told
            say({"ready": 1, "name": "stdlib-example", "version": "1"})
        elif "op" in told:
            threading.Thread(target=run, args=(told, pace), daemon=True).start()
    # End of input: those under way may finish, but nobody waits for them long.
    deadline = time.time() + 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(max(0, deadline - time.time()))


main()
