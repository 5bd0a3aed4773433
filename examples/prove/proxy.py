#!/usr/bin/env python3
"""A small retrying proxy of the standard library, for `ressac prove`.

It holds each reply back until it is whole: when it tries again, nothing has gone downstream.
"""
import http.client
import http.server
import os
import random
import select
import socket
import urllib.parse

UPSTREAM = urllib.parse.urlsplit(os.environ["PROVE_UPSTREAM"])
LISTEN = os.environ["PROVE_LISTEN"].rsplit(":", 1)
ATTEMPTS = int(os.environ.get("PROVE_ATTEMPTS", "4"))
BASE = float(os.environ.get("PROVE_BASE_MS", "500")) / 1000
CAP = float(os.environ.get("PROVE_CAP_MS", "30000")) / 1000

RETRYABLE = {429, 502, 503, 504}
IDEMPOTENT = {"GET", "HEAD", "PUT", "DELETE"}
OF_THE_CONNECTION = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}


def end_to_end(headers):
    return [(name, value) for name, value in headers if name.lower() not in OF_THE_CONNECTION]


def attempt(method, target, headers, body):
    """One attempt: status, headers and the whole body; None where there is no whole reply."""
    upstream = http.client.HTTPConnection(UPSTREAM.hostname, UPSTREAM.port, timeout=30)
    try:
        upstream.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        upstream.putheader("Host", UPSTREAM.netloc)
        for name, value in headers:
            if name.lower() != "host":
                upstream.putheader(name, value)
        upstream.endheaders(body or None)
        reply = upstream.getresponse()
        return reply.status, end_to_end(reply.getheaders()), reply.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        upstream.close()


def wait_before(retry, reply):
    ceiling = min(CAP, BASE * 2**retry)
    hint = next((v.strip() for n, v in reply[1] if n.lower() == "retry-after"), "") if reply else ""
    if not (hint.isascii() and hint.isdigit()):
        return random.uniform(0, ceiling)
    # On top of the hint, so that clients told the same do not come back together.
    floor = min(float(hint), 86_400)
    return floor + random.uniform(0, max(ceiling, floor))


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def left(self, seconds):
        """Waits. True if downstream has gone away meanwhile."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        if not readable:
            return False
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = end_to_end(self.headers.items())
        for number in range(ATTEMPTS):
            reply = attempt(self.command, self.path, headers, body)
            again = reply is None or reply[0] in RETRYABLE
            if not again or self.command not in IDEMPOTENT or number + 1 == ATTEMPTS:
                break
            if self.left(wait_before(number, reply)):
                self.close_connection = True
                return
        status, headers, data = reply or (502, [], b"")
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() != "content-length" or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = do_PATCH = forward

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


Server((LISTEN[0], int(LISTEN[1])), Proxy).serve_forever()
