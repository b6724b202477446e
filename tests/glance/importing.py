"""A paste filter that reports the work of ``glance_imports``, and changes the staged data before a store gets it.

It stands where ``authtoken`` does, and confirms the identity of an administrator.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

import fastio

PATH = "/v2/imports"
#: the position of the byte that is changed, in what is staged
POSITION = 5 << 20

#: the store before which it is changed
_before: list[str] = []


def factory(_: Any, **__: Any) -> Callable[[Any], Any]:
    """The filter, for paste."""
    import confirmed_identity
    from glance.async_.flows import api_image_import

    step: Any = api_image_import._ImportToStore
    execute = step._execute

    def changed(self: Any, action: Any, file_path: str) -> Any:
        if self.backend in _before:
            with open(file_path.removeprefix("file://"), "r+b") as file:
                file.seek(POSITION)
                file.write(b"?")
        return execute(self, action, file_path)

    step._execute = changed
    confirmed = confirmed_identity.factory({})
    return lambda application: Importing(confirmed(application))


class Importing:
    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            return self._application(environ, start_response)
        _before[:] = environ["QUERY_STRING"].split(",")
        counts = fastio.metrics().patches.get("glance_imports")
        content = json.dumps(counts.bytes if counts else 0).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(content)))])
        return [content]
