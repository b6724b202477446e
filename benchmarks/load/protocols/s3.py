"""S3: objects in a bucket, addressed by path. ``target`` has ``url``, ``access_key`` and ``secret_key``.

Requests are signed by botocore (Signature Version 4); the content is not, because hashing it would be most of what the
load generator does.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

from benchmarks.load.exchange import Exchange
from benchmarks.load.plan import Plan, PlanError
from benchmarks.load.protocols import Client, Refused, quoted
from benchmarks.load.schedule import Step


def _signer(target: Any) -> Any:
    from botocore.auth import S3SigV4Auth
    from botocore.credentials import Credentials

    class Signer(S3SigV4Auth):
        def payload(self, request: Any) -> str:
            return "UNSIGNED-PAYLOAD"

    credentials = Credentials(target["access_key"], target["secret_key"])
    return Signer(credentials, "s3", target.get("region", "us-east-1"))


class S3(Client):
    needed = ("url", "access_key", "secret_key")

    def __init__(self, plan: Plan, content: Any, shared: Any) -> None:
        super().__init__(plan, content, shared)
        self._signer = shared

    @classmethod
    def shared(cls, plan: Plan) -> Any:
        try:
            return _signer(plan.target)
        except ImportError as error:
            raise PlanError(f"s3 needs botocore, which signs its requests: pip install botocore ({error})") from error

    def _headers(self, method: str, target: str) -> dict[str, str]:
        from botocore.awsrequest import AWSRequest

        url = urllib.parse.urlsplit(self.plan.target["url"])
        request = AWSRequest(method, f"{url.scheme}://{self.connection.host}{target}", headers={})
        self._signer.add_auth(request)
        return dict(request.headers.items())

    def read(self, step: Step, found: Exchange) -> str:
        target = quoted(step.container, step.name)
        return self.get(target, step, found, self._headers("GET", target))

    def write(self, step: Step, found: Exchange) -> str:
        target = quoted(step.container, step.name)
        return self.put(target, step, found, self._headers("PUT", target), 200)

    def delete(self, step: Step, found: Exchange) -> str:
        target = quoted(step.container, step.name)
        return self.ask("DELETE", target, found, self._headers("DELETE", target), 200, 204)

    def list(self, step: Step, found: Exchange) -> str:
        query = urllib.parse.urlencode({"list-type": "2", "max-keys": "1000", "prefix": self.plan.prefix})
        target = f"{quoted(step.container)}?{query}"
        return self.ask("GET", target, found, self._headers("GET", target), 200)

    def make_container(self, name: str) -> None:
        # 409: it is ours already.
        self._bucket("PUT", name, 200, 409)

    def remove_container(self, name: str) -> None:
        self._bucket("DELETE", name, 200, 204, 404)

    def _bucket(self, method: str, name: str, *good: int) -> None:
        target = quoted(name)
        problem = self.ask(method, target, Exchange(), self._headers(method, target), *good)
        self.close()
        if problem:
            raise Refused(f"{method} of bucket {name}: {problem}")
