"""tenacity round a function that calls requests and raise_for_status, as its documentation does.

The documentation's HTTP example repeats whatever raises, and knows no methods: so does this.
"""

import importlib.metadata
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "_python"))
import loop
import requests
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from tenacity import wait_random_exponential


def make(op):
    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=256)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def send(session, op):
    retrying = Retrying(
        stop=stop_after_attempt(op.number("attempts", 4)),
        wait=wait_random_exponential(
            multiplier=op.seconds("base_ms", 0.5), max=op.seconds("cap_ms", 60.0)
        ),
        retry=retry_if_exception_type(IOError),
        reraise=True,
    )
    body = op.body()

    def call():
        response = session.request(
            op.method, op.url, headers=dict(op.headers), data=body,
            timeout=op.seconds("attempt_timeout_ms", 30.0), verify=op.ca_file or True,
        )
        response.raise_for_status()
        return response

    response = retrying(call)
    return response.status_code, response.content, retrying.statistics["attempt_number"]


loop.run("tenacity", importlib.metadata.version("tenacity"), make, send)
