#!/usr/bin/env python3
"""`requests` with urllib3's Retry, driven by `ressac prove`."""
import hashlib
import json
import sys
import threading

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

lock, sessions = threading.Lock(), {}


def session(client, pace):
    with lock:
        if client not in sessions:
            retry = Retry(
                total=int(pace.get("attempts", 4)) - 1,
                backoff_factor=pace.get("base_ms", 500) / 1000,
                backoff_max=pace.get("cap_ms", 30_000) / 1000,
                backoff_jitter=pace.get("base_ms", 500) / 1000,
                status_forcelist=[429, 502, 503, 504],
                raise_on_status=False,
            )
            one = requests.Session()
            one.mount("http://", HTTPAdapter(max_retries=retry, pool_maxsize=300))
            sessions[client] = one
        return sessions[client]


def run(op, pace):
    result = {"op": op["op"], "ok": False}
    try:
        body = open(op["body_file"], "rb").read() if op.get("body_file") else None
        headers = dict(op.get("headers", []))
        if op.get("key"):
            headers["Idempotency-Key"] = op["key"]
        reply = session(op["client"], pace).request(
            op["method"], op["url"], headers=headers, data=body, timeout=30
        )
        result.update(
            ok=reply.ok,
            status=reply.status_code,
            body_len=len(reply.content),
            body_sha256=hashlib.sha256(reply.content).hexdigest(),
        )
    except requests.RequestException as error:
        result["error"] = repr(error)
    with lock:
        print(json.dumps(result), flush=True)


pace = {}
for line in sys.stdin:
    told = json.loads(line)
    if "hello" in told:
        pace = told
        print(json.dumps({"ready": 1, "name": "requests", "version": requests.__version__}), flush=True)
    elif "op" in told:
        threading.Thread(target=run, args=(told, pace), daemon=True).start()
