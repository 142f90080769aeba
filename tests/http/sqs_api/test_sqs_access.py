"""Who may do what: signatures of the secret and of tokens, their scopes and queues."""

import datetime

import httpx
import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from forq_trio.http.sqs_api.messages import EXTRA
from support.real_server import RealServer

from .conftest import ROOT_KEY
from .raw import of_xml
from .test_sqs_messages import bodies, code, receive


def test_a_token_does_what_its_scopes_allow(connect, token, url) -> None:
    producer, consumer = connect(token("produce")), connect(token("consume"))
    producer.send_message(QueueUrl=url, MessageBody="x")
    assert bodies(receive(consumer, url)) == ["x"]
    for refused in (
        lambda: receive(producer, url),
        lambda: consumer.send_message(QueueUrl=url, MessageBody="x"),
        lambda: producer.delete_queue(QueueUrl=url),
        lambda: consumer.purge_queue(QueueUrl=url),
        lambda: producer.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]),
    ):
        with pytest.raises(ClientError) as error:
            refused()
        assert code(error) == "AccessDenied"
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_a_token_sees_only_its_queues(connect, sqs, token, name) -> None:
    for each in ("mine", "other"):
        sqs.create_queue(QueueName=f"{name}-{each}")
    client = connect(token("browse", queues=f"{name}-m*"))
    assert [each.rpartition("/")[2] for each in client.list_queues()["QueueUrls"]] == [f"{name}-mine"]
    with pytest.raises(ClientError) as error:
        client.get_queue_url(QueueName=f"{name}-other")
    assert code(error) == "AccessDenied"


def test_the_sender_of_a_message_is_its_token(connect, sqs, token, url, name) -> None:
    connect(token("produce")).send_message(QueueUrl=url, MessageBody="x")
    (message,) = receive(sqs, url, AttributeNames=["SenderId"])
    assert message["Attributes"] == {"SenderId": f"{name}-produce"}


def test_a_sender_of_another_api_is_not_believed_who_it_is(api, sqs, url, name) -> None:
    for proof in ("", ',"proof":"%s"' % ("0" * 32), ',"proof":"é"'):
        body = {"content": "x", "attributes": {EXTRA: f'{{"sender":"boss"{proof}}}'}}
        assert api.post(f"/api/v1/queues/{name}/messages", json=body).is_success
    found = receive(sqs, url, AttributeNames=["SenderId"])
    assert [each["Attributes"]["SenderId"] for each in found] == ["000000000000"] * 3


def test_a_copy_of_a_message_keeps_its_sender_and_a_changed_one_has_none(
    api, connect, sqs, token, url, name
) -> None:
    attributes = {"n": {"DataType": "Number", "StringValue": "5"}}
    connect(token("produce")).send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)
    path = f"/api/v1/queues/{name}/messages"
    (sent,) = api.post(f"{path}/receive", json={"max": 1}).json()["messages"]
    copy = {"content": sent["content"], "attributes": sent["attributes"]}
    other_number = {"attributes": sent["attributes"] | {"n": "6"}}
    extra = sent["attributes"][EXTRA]
    other_header = {"attributes": sent["attributes"] | {EXTRA: '{"traceHeader":"t",' + extra[1:]}}
    other_sender = {"attributes": sent["attributes"] | {EXTRA: extra[:-1] + ',"sender":"boss"}'}}
    for changed in ({}, {"content": "y"}, other_number, other_header, other_sender):
        assert api.post(path, json=copy | changed).is_success
    first, *others = receive(sqs, url, AttributeNames=["SenderId"], MessageAttributeNames=["All"])
    assert first["Attributes"] == {"SenderId": f"{name}-produce"}
    assert first["MessageAttributes"] == attributes
    assert [each["Attributes"]["SenderId"] for each in others] == ["000000000000"] * 4


def test_a_type_that_no_attribute_has_is_a_string(api, sqs, url, name) -> None:
    body = {"content": "x", "attributes": {"a": "b", EXTRA: '{"types": {"a": "Nonsense"}}'}}
    assert api.post(f"/api/v1/queues/{name}/messages", json=body).is_success
    (message,) = receive(sqs, url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == {"a": {"DataType": "String", "StringValue": "b"}}


def test_a_revoked_token_signs_nothing(api, connect, token, url, name) -> None:
    client = connect(token("consume"))
    receive(client, url)
    assert api.delete(f"/api/v1/tokens/{name}-consume").status_code == 204
    with pytest.raises(ClientError) as error:
        receive(client, url)
    assert code(error) == "InvalidClientTokenId"


def test_wrong_keys(connect, url) -> None:
    with pytest.raises(ClientError) as error:
        receive(connect(("forq", "wrong")), url)
    assert code(error) == "SignatureDoesNotMatch"
    with pytest.raises(ClientError) as error:
        receive(connect(("FORQ0123456789ABCDEF", "wrong")), url)
    assert code(error) == "InvalidClientTokenId"


class Signed:
    """Requests that are signed by botocore, and changed before they are sent."""

    def __init__(self, server: RealServer) -> None:
        self._url = server.url
        self._credentials = Credentials(*ROOT_KEY)

    def post(
        self, body: str = "{}", *, at: datetime.datetime | None = None, **changes: str
    ) -> httpx.Response:
        headers = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
        request = AWSRequest("POST", f"{self._url}/", data=body, headers=headers)
        if at is not None:
            request.headers["X-Amz-Date"] = at.strftime("%Y%m%dT%H%M%SZ")
        SigV4Auth(self._credentials, "sqs", "us-east-1").add_auth(request)
        sent = dict(request.headers.items()) | {
            name.replace("_", "-"): text for name, text in changes.items()
        }
        return httpx.post(f"{self._url}/", content=changes.get("body", body), headers=sent, verify=False)

    def presigned(self, query: str, seconds: int = 60) -> httpx.Response:
        request = AWSRequest("GET", f"{self._url}/?{query}")
        SigV4QueryAuth(self._credentials, "sqs", "us-east-1", expires=seconds).add_auth(request)
        return httpx.get(request.url, verify=False)


@pytest.fixture
def signed(server: RealServer) -> Signed:
    return Signed(server)


def error_of(response: httpx.Response) -> str:
    return response.headers["x-amzn-query-error"].partition(";")[0]


def test_a_signature_is_over_body_and_headers(signed) -> None:
    assert signed.post().status_code == 200
    for response in (
        signed.post(body='{"QueueNamePrefix": "x"}', X_Amz_Date="20200101T000000Z"),
        signed.post(X_Amz_Target="AmazonSQS.CreateQueue"),
    ):
        assert response.status_code == 403
        assert error_of(response) in ("SignatureDoesNotMatch", "IncompleteSignature")


def test_a_request_without_a_signature(server) -> None:
    headers = {"X-Amz-Target": "AmazonSQS.ListQueues"}
    response = httpx.post(f"{server.url}/", headers=headers, content="{}", verify=False)
    assert (response.status_code, error_of(response)) == (403, "MissingAuthenticationToken")
    response = httpx.post(
        f"{server.url}/", headers={**headers, "Authorization": "AWS4-HMAC-SHA256 nonsense"}, verify=False
    )
    assert (response.status_code, error_of(response)) == (403, "IncompleteSignature")


def test_a_presigned_url_of_the_query_protocol(signed) -> None:
    response = signed.presigned("Action=ListQueues&Version=2012-11-05")
    assert response.status_code == 200, response.text
    assert "<ListQueuesResponse" in response.text
    assert "Unknown" not in response.text


def test_the_server_answers_in_the_protocol_of_the_request(signed) -> None:
    response = signed.presigned("Action=GetQueueUrl&QueueName=absent&Version=2012-11-05")
    assert response.status_code == 400
    assert response.headers["content-type"] == "text/xml"
    assert "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>" in response.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods(server, method: str) -> None:
    """Only the paths of the dialect are answered as by SQS: `/`, and an account with a queue."""
    with httpx.Client(base_url=server.url, verify=False) as client:
        for path in ("/", "/000000000000/q"):
            response = client.request(method, path)
            assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")
            assert of_xml(response).message == "The methods here are GET, POST."
        response = client.request(method, "/foo/bar")
        assert (response.status_code, response.json()["code"]) == (404, "not_found.path")
