"""stamina round httpx, with the backoff hook that its documentation shows.

The hook repeats every error of httpx and every 5xx, and takes Retry-After as its own backoff.
"""

import functools
import importlib.metadata
import pathlib
import ssl
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "_python"))
import httpx
import loop
import stamina


def hook(error):
    if isinstance(error, httpx.HTTPStatusError):
        status, hint = error.response.status_code, error.response.headers.get("Retry-After")
        if status in (429, 503) and hint is not None and hint.isdecimal():
            return float(hint)
        return status == 429 or status >= 500
    return isinstance(error, httpx.HTTPError)


@functools.cache
def tls(ca_file):
    """One TLS context for all clients, as httpx advises: making one takes long."""
    return ssl.create_default_context(cafile=ca_file)


tls(None)


def make(op):
    limits = httpx.Limits(max_connections=None)
    return httpx.Client(verify=tls(op.ca_file), limits=limits, http1=op.http != "h2c", http2=op.http != "1.1")


def send(client, op):
    caller = stamina.RetryingCaller(attempts=op.number("attempts", 4))
    body = op.body()

    def call():
        timeout = httpx.Timeout(op.seconds("attempt_timeout_ms", 30.0))
        response = client.request(
            op.method, op.url, headers=op.headers, content=body, timeout=timeout
        )
        response.raise_for_status()
        return response

    response = caller(hook, call)
    return response.status_code, response.content


stamina.instrumentation.set_on_retry_hooks([])
loop.run("stamina", importlib.metadata.version("stamina"), make, send)
