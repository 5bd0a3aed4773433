#!/usr/bin/env -S python3 -IS
"""curl with --retry and --retry-connrefused."""

import os.path
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "_exec"))
import wrap

HTTP = {"2": "--http2", "h2c": "--http2-prior-knowledge"}


def command(op):
    line = ["curl", "-q", "-sS", "--noproxy", "*", "-o", op.out, "-w", "%{http_code}"]
    line += ["--retry", str(int(op.text("ATTEMPTS") or 4) - 1), "--retry-connrefused"]
    line += [HTTP.get(op.text("HTTP"), "--http1.1")]
    if limit := op.seconds("ATTEMPT_TIMEOUT_MS"):
        line += ["--max-time", limit]
    if authority := op.text("CA_FILE"):
        line += ["--cacert", authority]
    for header in op.headers + ([f"Idempotency-Key: {op.key}"] if op.key else []):
        line += ["-H", header]
    line += ["--head"] if op.method == "HEAD" else ["-X", op.method]
    if op.body_file and op.stream:
        line += ["-T", "-"]  # read from standard input, once
    elif op.body_file:
        line += ["--data-binary", f"@{op.body_file}", "-H", "Content-Type:"]
    return line + [op.url]


def judge(op, code, stdout, stderr):
    status = int(stdout) if stdout.isdecimal() and int(stdout) else None
    if op.method == "HEAD" and os.path.exists(op.out):
        os.truncate(op.out, 0)  # it writes the head of the reply there
    ok = code == 0 and status is not None and 200 <= status < 300
    return {"ok": ok, "status": status, "key": op.key, "error": stderr.strip() or None}


wrap.run(command, judge)
