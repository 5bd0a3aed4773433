"""httpx with the RetryTransport of httpx-retries."""

import functools
import importlib.metadata
import pathlib
import ssl
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "_python"))
import httpx
import loop
from httpx_retries import Retry, RetryTransport


@functools.cache
def tls(ca_file):
    """One TLS context for all clients, as httpx advises: making one takes long."""
    return ssl.create_default_context(cafile=ca_file)


tls(None)


def make(op):
    limits = httpx.Limits(max_connections=None)
    inner = httpx.HTTPTransport(verify=tls(op.ca_file), limits=limits, http1=op.http != "h2c", http2=op.http != "1.1")
    return httpx.Client(transport=RetryTransport(transport=inner))


def send(client, op):
    # Its formula doubles before the first retry, so that the first ceiling is twice the factor.
    retry = {
        "total": op.number("attempts", 4) - 1,
        "backoff_factor": op.seconds("base_ms", 1.0) / 2,
        "max_backoff_wait": op.seconds("retry_after_max_ms", 120.0),
    }
    if op.key or op.safe:
        retry["allowed_methods"] = [op.method]
    response = client.request(
        op.method, op.url, headers=op.headers, content=op.body(),
        timeout=op.seconds("attempt_timeout_ms", 30.0),
        extensions={"retry": Retry(**retry)},
    )
    made = response.extensions.get("retry")
    return response.status_code, response.content, made.attempts_made + 1 if made else 1


loop.run("httpx-retries", importlib.metadata.version("httpx-retries"), make, send)
