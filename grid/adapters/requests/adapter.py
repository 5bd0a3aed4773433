"""requests with urllib3's Retry, mounted on a Session as requests' documentation shows."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "_python"))
import loop
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util import Retry


def make(op):
    """One Session for each client; operations that may be repeated anyway have a second one."""
    return {False: session(op, Retry.DEFAULT_ALLOWED_METHODS), True: session(op, None)}


def session(op, methods):
    retry = Retry(
        total=op.number("attempts", 4) - 1,
        status_forcelist=[429, 502, 503, 504],
        allowed_methods=methods,
        backoff_factor=0.1,
        raise_on_status=False,
        **({"retry_after_max": int(s)} if (s := op.seconds("retry_after_max_ms", 0)) else {}),
    )
    made = requests.Session()
    for scheme in ("http://", "https://"):
        made.mount(scheme, HTTPAdapter(max_retries=retry, pool_maxsize=256))
    return made


def send(sessions, op):
    chosen = sessions[bool(op.key or op.safe)]
    response = chosen.request(
        op.method, op.url, headers=dict(op.headers), data=op.body(),
        timeout=op.seconds("attempt_timeout_ms", 30.0), verify=op.ca_file or True,
    )
    return response.status_code, response.content, len(response.raw.retries.history) + 1


loop.run("requests", f"{requests.__version__} urllib3 {urllib3.__version__}", make, send)
