#!/usr/bin/env -S python3 -IS
"""wget with --tries, --waitretry, --retry-on-http-error and --retry-connrefused."""

import os.path
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "_exec"))
import wrap


def command(op):
    line = ["wget", "--no-config", "--no-proxy", "--server-response", "--output-document", op.out]
    line += ["--tries", op.text("ATTEMPTS") or "4", "--waitretry", "10", "--retry-connrefused"]
    line += ["--retry-on-http-error", "429,502,503,504", "--method", op.method]
    if limit := op.seconds("ATTEMPT_TIMEOUT_MS"):
        line += ["--timeout", limit]
    if authority := op.text("CA_FILE"):
        line += ["--ca-certificate", authority]
    for header in op.headers + ([f"Idempotency-Key: {op.key}"] if op.key else []):
        line += ["--header", header]
    if op.body_file:
        line += ["--body-file", op.body_file]
    return line + [op.url]


def judge(op, code, _stdout, stderr):
    statuses = re.findall(r"^  HTTP/\S+ (\d{3})", stderr, re.MULTILINE)
    status = int(statuses[-1]) if statuses else None
    return {"ok": code == 0, "status": status, "key": op.key,
            "error": None if code == 0 else f"exit {code}"}


wrap.run(command, judge)
