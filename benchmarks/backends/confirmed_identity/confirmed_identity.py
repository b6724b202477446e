"""A filter for a service's pipeline, in the place of keystone's ``authtoken``: each request is an administrator's.

The headers are those that ``authtoken`` adds to a request whose token it has in its cache.
"""

from collections.abc import Callable
from typing import Any

_IDENTITY = {
    "HTTP_X_IDENTITY_STATUS": "Confirmed",
    "HTTP_X_USER_ID": "9a3c5a1e4f0b4c0c8e3f6d2b7a1c5e90",
    "HTTP_X_PROJECT_ID": "1f7e2b9c0d384a56b8c4e6f0a2d3c5b7",
    "HTTP_X_ROLES": "admin,member,reader",
}


def factory(_defaults: Any, **_options: str) -> Callable[..., Any]:
    def of(application: Callable[..., Any]) -> Callable[..., Any]:
        def confirmed(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
            environ.update(_IDENTITY)
            return application(environ, start_response)

        return confirmed

    return of
