"""Signed requests of both protocols with any body: also those that no SDK sends."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from support.processes import WAIT_SECONDS_MAX

NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


class Answer(NamedTuple):
    """What both protocols say of an error. code and message: "" where there is none."""

    status: int
    code: str
    message: str


class RawClient:
    """key: id and secret."""

    def __init__(self, url: str, key: tuple[str, str], region: str = "us-east-1") -> None:
        self.url = url
        self._key = Credentials(*key)
        self._region = region
        self._client = httpx.Client(verify=False, timeout=WAIT_SECONDS_MAX)

    def close(self) -> None:
        self._client.close()

    def headers(self, body: bytes, **headers: str) -> dict[str, str]:
        """Signed headers of a request to `/`."""
        request = AWSRequest("POST", f"{self.url}/", data=body, headers=headers)
        SigV4Auth(self._key, "sqs", self._region).add_auth(request)
        return dict(request.headers.items())

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        return self._client.post(f"{self.url}/", content=body, headers=self.headers(body, **headers))

    def json(self, operation: str, body: Mapping[str, Any] | bytes, **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = {"X-Amz-Target": f"AmazonSQS.{operation}", "Content-Type": "application/x-amz-json-1.0"}
        return self.post(content, **more, **headers)

    def form(self, operation: str, fields: Mapping[str, Any] | bytes) -> httpx.Response:
        content = fields if isinstance(fields, bytes) else urlencode(fields).encode()
        return self.post(b"Action=%s&%s" % (operation.encode(), content))

    def both(self, operation: str, members: Mapping[str, Any]) -> Answer:
        """What both protocols answer, which is the same."""
        answer = of_json(self.json(operation, members))
        assert of_xml(self.form(operation, members)) == answer
        return answer


def of_json(response: httpx.Response) -> Answer:
    if response.status_code == 200:
        return Answer(200, "", "")
    code = response.headers["x-amzn-query-error"].partition(";")[0]
    return Answer(response.status_code, code, response.json()["message"])


def of_xml(response: httpx.Response) -> Answer:
    """Fails if the answer is not well-formed."""
    error = ET.fromstring(response.content).find(f"{NAMESPACE}Error")
    if error is None:
        return Answer(response.status_code, "", "")
    code, message = (error.findtext(f"{NAMESPACE}{name}") or "" for name in ("Code", "Message"))
    return Answer(response.status_code, code, message)


def texts(response: httpx.Response, name: str) -> list[str]:
    """The texts of all elements of this name in an answer."""
    return [each.text or "" for each in ET.fromstring(response.content).iter(f"{NAMESPACE}{name}")]
