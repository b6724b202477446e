"""Swift's own clients can use it, and its stand-ins for Keystone and memcached do what Swift needs."""

import json
import urllib.error
import urllib.request

import pytest

from tests.backends.required import usable


@pytest.fixture(scope="module")
def access():
    with usable("swift")() as running:
        assert running.access()["patched"] == {}
        yield running.access()


@pytest.mark.parametrize("version", ["1", "3"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning:keystoneclient")
def test_swiftclient_logs_in_and_keeps_an_object(access, version):
    swiftclient = pytest.importorskip("swiftclient")
    address = access["auth_v1"] if version == "1" else access["auth_v3"]
    account, _, user = access["user"].partition(":")
    who = {"user": access["user"]} if version == "1" else {"user": user, "tenant_name": account}
    connection = swiftclient.Connection(address, key=access["key"], auth_version=version, retries=0, **who)

    connection.put_container(f"container{version}")
    connection.put_object(f"container{version}", "object", b"data")

    assert connection.get_object(f"container{version}", "object")[1] == b"data"
    assert [each["name"] for each in connection.get_container(f"container{version}")[1]] == ["object"]
    connection.close()


def login(access, content):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    request = urllib.request.Request(access["auth_v3"] + "/auth/tokens", data)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, json.load(error)


def credentials(password="testing", user="tester", project="test"):
    identity = {"methods": ["password"], "password": {"user": {"name": user, "password": password}}}
    return {"auth": {"identity": identity, "scope": {"project": {"name": project}}}}


@pytest.mark.parametrize(
    "wrong", [credentials(password="guess"), credentials(user="nobody"), credentials(project="other")]
)
def test_wrong_credentials(access, wrong):
    status, _, body = login(access, wrong)

    assert status == 401
    assert body["error"]["code"] == 401


def test_with_fastio():
    with usable("swift")(fastio="on") as running:
        found = running.access()["patched"]
        assert set(found) == {"account", "container", "object", "proxy"}
        for names in found.values():
            assert "green_sendall" in names
        assert login(running.access(), credentials())[0] == 201
