"""Nothing secret is recorded, and what is harmless stays readable."""

from __future__ import annotations

import string
import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastio.trace import redaction

WORDS = st.text(string.ascii_lowercase + " .,:_-/()[]'", max_size=40)
#: what a secret may be made of in an address or a header
SECRETS = st.text(string.ascii_letters + string.digits + "-._~%+/=!$*@", min_size=6, max_size=60).filter(
    lambda secret: any(c.isdigit() for c in secret)
)
OPAQUE = st.text(string.ascii_letters + string.digits + "-_", min_size=6, max_size=60).filter(
    lambda secret: any(c.isdigit() for c in secret)
)
KEYS = st.sampled_from(
    ["token", "X-Auth-Token", "password", "admin_password", "secret", "Signature", "X-Amz-Credential", "api_key",
     "s3_store_secret_key", "access_key", "swift_store_key_passwd", "user_domain_PASSWORD", "temp_url_sig"]
)  # fmt: skip


@given(WORDS, SECRETS, st.sampled_from(["http", "https", "mysql+pymysql", "swift+https", "rbd"]), WORDS)
def test_the_password_of_an_address(before: str, secret: str, scheme: str, after: str) -> None:
    secret = secret.replace("/", "")
    if len(secret) < 6:
        return
    found = redaction.text(f"{before} {scheme}://glance:{secret}@host:3306/images {after}")
    assert secret not in found
    assert f"{scheme}://***@host:3306/images" in found


@given(WORDS, SECRETS, st.sampled_from(["http://host:8080/v1/AUTH_a/images/b", "/v1/AUTH_a/c/o", "https://host/"]))
def test_what_follows_the_question_mark(before: str, secret: str, address: str) -> None:
    for query in (f"temp_url_sig={secret}&temp_url_expires=17", f"a=b&X-Amz-Security-Token={secret}", secret):
        found = redaction.text(f"{before} {address}?{query} failed")
        assert secret not in found
        assert f"{address}?***" in found
        assert found.endswith("failed")


@given(WORDS, KEYS, OPAQUE, st.sampled_from(["{}={}", "{}: {}", "'{}': '{}'", '"{}": "{}"', "{} = {}", "b'{}': b'{}'"]))
def test_values_of_keys_that_say_so(before: str, key: str, secret: str, shape: str) -> None:
    assert secret not in redaction.text(f"{before} {shape.format(key, secret)} and more")


@given(st.sampled_from(["Authorization", "Cookie", "Set-Cookie", "X-Subject-Authorization"]), SECRETS, WORDS)
def test_headers_of_several_words(header: str, secret: str, after: str) -> None:
    for value in (f"Bearer {secret}", f"AWS4-HMAC-SHA256 Credential={secret}, SignedHeaders=host, Signature={secret}"):
        assert secret not in redaction.text(f"GET failed\n{header}: {value}\r\n{after}")


@given(st.text(string.ascii_letters + string.digits + "-_", min_size=40, max_size=200), WORDS)
def test_a_token_on_its_own(rest: str, before: str) -> None:
    assert rest not in redaction.text(f"{before} gAAAAA{rest} is not valid")
    assert rest not in redaction.text(f"{before} eyJ{rest}.{rest}.{rest} is not valid")


@given(st.binary(min_size=16, max_size=64), WORDS)
def test_long_hexadecimal_words(secret: bytes, before: str) -> None:
    assert secret.hex() not in redaction.text(f"{before} token {secret.hex()} was refused")


@given(st.dictionaries(st.sampled_from(["url", "name"]), SECRETS, min_size=1))
def test_the_values_of_an_error_of_the_database(parameters: dict[str, str]) -> None:
    found = redaction.text(
        "(sqlite3.OperationalError) database is locked\n[SQL: UPDATE images SET status=? WHERE id = ?]\n"
        f"[parameters: {tuple(parameters.values())!r}]\n(Background on this error at: https://sqlalche.me/e/20/e3q8)"
    )
    assert found.startswith("(sqlite3.OperationalError) database is locked [SQL: UPDATE images SET status=")
    for secret in parameters.values():
        assert secret not in found


@given(st.text(max_size=10_000))
@example("\x00\n\r\u2028" * 50)
@example("password=" * 500)
@example("a" * 5000 + "://" + "b" * 5000 + "@")
def test_any_text_gives_one_short_line(value: str) -> None:
    found = redaction.text(value)
    assert len(found) <= 400
    assert "\n" not in found
    assert "\r" not in found


@pytest.mark.parametrize(
    "harmless",
    [
        "Image 5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3 not found",
        "[Errno 28] No space left on device: '/var/lib/glance/images/5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3'",
        "Connection to 10.0.0.1:6789 timed out after 30 s (request req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3)",
        "HTTPConnectionPool(host='127.0.0.1', port=8080): Max retries exceeded",
        "The authentication request has failed: 401 Unauthorized",
        "(sqlite3.OperationalError) database is locked",
    ],
)
def test_what_is_harmless_stays(harmless: str) -> None:
    assert redaction.text(harmless) == harmless


def test_an_error_names_its_class_and_the_one_it_came_from() -> None:
    try:
        try:
            raise OSError(28, "No space left on device")
        except OSError as error:
            raise RuntimeError("the store is full, token=abc123") from error
    except RuntimeError as error:
        found = redaction.error(error)
    assert found == "RuntimeError: the store is full, token=*** (from OSError: [Errno 28] No space left on device)"


def test_an_error_whose_text_can_not_be_had() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert redaction.error(OddError()) == "OddError: its text can not be had"
    assert redaction.error(ValueError()) == "ValueError"


def test_errors_in_a_cycle_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert redaction.error(one).startswith("ValueError: one")


def test_paths_have_no_query() -> None:
    identity = str(uuid.uuid4())
    assert redaction.path(f"/v2/images/{identity}/file?token=abc#x") == f"/v2/images/{identity}/file"
    assert redaction.path(f"/v2/images/{identity}/file") == f"/v2/images/{identity}/file"
    assert redaction.path(f"/v2/images/{'0a' * 20}") == "/v2/images/***"
    assert redaction.path("/v2/images;jsessionid=1a2b3c") == "/v2/images"


@given(st.one_of(st.none(), st.integers(), st.text(max_size=80), st.uuids().map(lambda u: f"req-{u}")))
def test_request_ids(value: object) -> None:
    found = redaction.request_id(value)
    assert found is None or found == value and str(found).startswith("req-") and len(str(found)) <= 64


def test_a_request_id_is_none_that_a_client_has_made_up() -> None:
    for value in ("", "req-", "token", "req-a b", "req-\u00e9", "req-" + "a" * 61, "req-a\nreq-b", "req-a\n"):
        assert redaction.request_id(value) is None
