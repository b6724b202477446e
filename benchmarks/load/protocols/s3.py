"""S3: objects in a bucket, addressed by path. ``server`` has ``url``, ``access_key`` and ``secret_key``.

Requests are signed by botocore (Signature Version 4); the content is not, because hashing it would be most of what the
load generator does.
"""

import urllib.parse
from typing import Any

from benchmarks.load import Wrong
from benchmarks.load.exchange import Exchange
from benchmarks.load.plan import Plan
from benchmarks.load.protocols import Client, Refused, quoted
from benchmarks.load.schedule import Step


def _signer(server: Any) -> Any:
    from botocore.auth import S3SigV4Auth
    from botocore.credentials import Credentials

    class Signer(S3SigV4Auth):
        def payload(self, request: Any) -> str:
            return "UNSIGNED-PAYLOAD"

    credentials = Credentials(server["access_key"], server["secret_key"])
    return Signer(credentials, "s3", server.get("region", "us-east-1"))


class S3(Client):
    needed = ("url", "access_key", "secret_key")

    def __init__(self, plan: Plan, content: Any, shared: Any) -> None:
        super().__init__(plan, content, shared)
        self._signer = shared

    @classmethod
    def shared(cls, plan: Plan) -> Any:
        try:
            return _signer(plan.server)
        except ImportError as error:
            raise Wrong(f"s3 needs botocore, which signs its requests: pip install botocore ({error})") from error

    def _headers(self, method: str, path: str) -> dict[str, str]:
        from botocore.awsrequest import AWSRequest

        url = urllib.parse.urlsplit(self.plan.server["url"])
        request = AWSRequest(method, f"{url.scheme}://{self.connection.host}{path}", headers={})
        self._signer.add_auth(request)
        return dict(request.headers.items())

    def read(self, step: Step, found: Exchange) -> str:
        path = quoted(step.container, step.name)
        return self.get(path, step, found, self._headers("GET", path))

    def write(self, step: Step, found: Exchange) -> str:
        path = quoted(step.container, step.name)
        return self.put(path, step, found, self._headers("PUT", path), 200)

    def delete(self, step: Step, found: Exchange) -> str:
        path = quoted(step.container, step.name)
        return self.ask("DELETE", path, found, self._headers("DELETE", path), 200, 204)

    def list(self, step: Step, found: Exchange) -> str:
        query = urllib.parse.urlencode({"list-type": "2", "max-keys": "1000"})
        path = f"{quoted(step.container)}?{query}"
        return self.ask("GET", path, found, self._headers("GET", path), 200)

    def make_container(self, name: str) -> None:
        # 409: it is ours already.
        self._bucket("PUT", name, 200, 409)

    def remove_container(self, name: str) -> None:
        self._bucket("DELETE", name, 200, 204, 404)

    def _bucket(self, method: str, name: str, *good: int) -> None:
        path = quoted(name)
        problem = self.ask(method, path, Exchange(), self._headers(method, path), *good)
        self.close()
        if problem:
            raise Refused(f"{method} of bucket {name}: {problem}")
