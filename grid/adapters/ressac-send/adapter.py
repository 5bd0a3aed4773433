#!/usr/bin/env -S python3 -IS
"""`ressac send`: the policy goes into a file, the rest into options.

RESSAC is the binary to run; without it, the one on the path.
"""

import json
import os.path
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "_exec"))
import wrap


# `2` is by ALPN, as it comes.
HTTP = {"1.1": "--http1.1", "h2c": "--http2-prior-knowledge"}


def duration(ms):
    return f'"{round(float(ms))}ms"'


def value(text):
    """A value of TOML: a number where it is one, else a string."""
    try:
        return str(int(text))
    except ValueError:
        pass
    try:
        return str(float(text))
    except ValueError:
        return f'"{text}"'


def pairs(text):
    """`ratio=0.1,window=10s` as an inline table of TOML."""
    parts = [pair.split("=", 1) for pair in text.split(",")]
    return "{ " + ", ".join(f"{name} = {value(said)}" for name, said in parts) + " }"


def policy(op):
    lines = ["[policy.prove]", 'mode = "sync"']
    if attempts := op.text("ATTEMPTS"):
        lines.append(f"retries = {int(attempts) - 1}")
    for name, setting in (("BASE_MS", "base"), ("CAP_MS", "cap"), ("DEADLINE_MS", "window"),
                          ("ATTEMPT_TIMEOUT_MS", "attempt_timeout")):
        if said := op.text(name):
            lines.append(f"{setting} = {duration(said)}")
    if factor := op.text("FACTOR"):
        lines.append(f"factor = {value(factor)}")
    if jitter := op.text("JITTER"):
        lines.append(f'jitter = "{jitter}"')
    if words := op.text("RETRY_ON"):
        listed = [w if w.isdecimal() else f'"{w}"' for w in words.split(",")]
        lines.append(f"retry_on = [{', '.join(listed)}]")
    if longest := op.text("RETRY_AFTER_MAX_MS"):
        over = op.text("RETRY_AFTER_OVER_MAX") or "clamp"
        lines.append(f'retry_after = {{ max = {duration(longest)}, over_max = "{over}" }}')
    for name, setting in (("BUDGET", "budget"), ("BREAKER", "breaker")):
        if said := op.text(name):
            lines.append(f"{setting} = " + ('"off"' if said == "off" else pairs(said)))
    path = os.path.join(op.folder, "policy.toml")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    return f"{path}:prove"


def command(op):
    line = [os.environ.get("RESSAC", "ressac"), "send", "--json", "-o", op.out, "-X", op.method]
    line += ["--policy", policy(op)]
    if op.body_file:
        line += ["-d", "@-" if op.stream else f"@{op.body_file}"]
    for header in op.headers:
        line += ["-H", header]
    if op.key:
        line += ["--key", op.key]
    elif op.text("KEY_MODE") == "own":
        line += ["--make-key"]
    if op.text("SAFE") == "1":
        line += ["--idempotent"]
    if version := HTTP.get(op.text("HTTP")):
        line += [version]
    if authority := op.text("CA_FILE"):
        line += ["--cacert", authority]
    return line + [op.url]


def judge(_op, code, stdout, _stderr):
    said = json.loads(stdout) if stdout.startswith("{") else {}
    hint = said.get("hint_ms", said.get("hint"))
    return {"ok": code == 0, "status": said.get("status"), "attempts": said.get("attempts"),
            "reason": said.get("reason"), "key": said.get("key"), "error": said.get("error"),
            "hint_ms": hint}


wrap.run(command, judge)
