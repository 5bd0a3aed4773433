"""botocore in standard mode: objects of S3 are got, put and deleted, unsigned.

The partner of the suite does not speak S3. So the address and the headers of an operation are
put in by botocore's own event `before-call`, and the body of a reply is taken by `before-parse`
before botocore looks for XML in it. Retries are untouched by either.
"""

import importlib.metadata
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "_python"))
import botocore.session
import loop
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

CALLS = {"GET": "get_object", "HEAD": "head_object", "PUT": "put_object",
         "DELETE": "delete_object", "POST": "create_multipart_upload",
         "PATCH": "create_multipart_upload"}  # no call sends PATCH: a POST with another word
session = botocore.session.get_session()
making = threading.Lock()  # a session is not safe to share between threads, a client is
here = threading.local()


def before_call(params, **_):
    params["url"] = here.op.url
    params["method"] = here.op.method
    params["headers"].update(here.op.headers)
    if here.op.method in ("POST", "PATCH") and (body := here.op.body()) is not None:
        params["body"] = body


def before_parse(response_dict, **_):
    here.body = response_dict["body"] if isinstance(response_dict["body"], bytes) else b""
    if isinstance(response_dict["body"], bytes):
        response_dict["body"] = b""


def make(op):
    config = Config(
        signature_version=UNSIGNED, max_pool_connections=256,
        retries={"mode": "standard", "total_max_attempts": op.number("attempts", 4)},
        s3={"addressing_style": "path"}, request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    with making:
        client = session.create_client(
            "s3", region_name="us-east-1", endpoint_url=op.url.rsplit("/", 2)[0],
            verify=op.ca_file, config=config)
    client.meta.events.register("before-call.s3", before_call)
    # With stars it comes before botocore's own handler, to which a body that is no XML is an error.
    client.meta.events.register_first("before-parse.*.*", before_parse)
    return client


def send(client, op):
    if op.method not in CALLS:
        raise ValueError(f"S3 has no call that sends {op.method}")
    here.op, here.body = op, b""
    call = {"Bucket": "bucket", "Key": "key"}
    if op.method == "PUT" and (body := op.body()) is not None:
        call["Body"] = body
    try:
        reply = getattr(client, CALLS[op.method])(**call)
    except ClientError as error:
        meta = error.response["ResponseMetadata"]
        return meta["HTTPStatusCode"], here.body, meta.get("RetryAttempts", 0) + 1
    body = reply["Body"].read() if "Body" in reply else here.body
    meta = reply["ResponseMetadata"]
    return meta["HTTPStatusCode"], body, meta.get("RetryAttempts", 0) + 1


loop.run("botocore", importlib.metadata.version("botocore"), make, send)
