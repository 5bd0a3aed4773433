"""What the command line tools share: one process is one operation.

An adapter gives `run` a function that turns the operation into a command, and one that reads what
became of it. Exit 0 means that it succeeded, 1 that it failed.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile


class Op:
    """The operation that the environment tells of."""

    def __init__(self, folder):
        self.folder = folder
        self.url = self.text("URL")
        self.method = self.text("METHOD") or "GET"
        self.key = self.text("KEY") if self.text("KEY_MODE") == "given" else None
        self.body_file = self.text("BODY_FILE")
        self.stream = self.text("BODY_MODE") == "stream"
        self.out = os.path.join(folder, "out")

    @staticmethod
    def text(name):
        """A setting, None where there is none."""
        return os.environ.get("PROVE_" + name) or None

    def seconds(self, name):
        """A setting in milliseconds, as seconds in text."""
        value = self.text(name)
        return None if value is None else f"{float(value) / 1000:g}"

    @property
    def headers(self):
        """Header lines of every attempt, without the key."""
        return [f"{name}: {value}" for name, value in json.loads(self.text("HEADERS") or "[]")]


def run(command, judge):
    """Runs the command and says what it came to."""
    with tempfile.TemporaryDirectory() as folder:
        op = Op(folder)
        stdin = open(op.body_file, "rb") if op.stream and op.body_file else subprocess.DEVNULL
        child = subprocess.Popen(
            command(op), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

        def stop(*_):
            child.terminate()
            child.wait()
            sys.exit(143)

        signal.signal(signal.SIGTERM, stop)
        stdout, stderr = child.communicate()
        sys.stderr.write(stderr)
        result = judge(op, child.returncode, stdout, stderr)
        result["op"] = op.text("OP") or "1"
        if result["ok"] and os.path.exists(op.out):
            with open(op.out, "rb") as file:
                body = file.read()
            result["body_len"] = len(body)
            result["body_sha256"] = hashlib.sha256(body).hexdigest()
        elif result["ok"]:
            result["body_len"] = 0
        line = json.dumps({k: v for k, v in result.items() if v is not None})
        if path := op.text("RESULT_FILE"):
            with open(path, "w") as file:
                file.write(line + "\n")
        else:
            print(line, flush=True)
    sys.exit(0 if result["ok"] else 1)
