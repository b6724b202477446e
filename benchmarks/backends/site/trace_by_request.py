"""For a service that fastio traces: a request with the header ``X-Trace: off`` is not recorded.

One process thus shows the cost of a trace. Two processes of the same service differ from each other by more than that.
"""

from collections.abc import Callable, Iterable
from typing import Any

import wrapt


def _by_request(module: Any) -> None:
    traced, recorder = module.traced, module.recorder

    def by_request(application: Any, *args: Any, **kwargs: Any) -> Callable[..., Iterable[bytes]]:
        recorded = traced(application, *args, **kwargs)
        kept = None

        def choose(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            nonlocal kept
            # A forked worker has its own recorder, not its parent's.
            kept = recorder.active or kept
            recorder.active = None if environ.get("HTTP_X_TRACE") == "off" else kept
            return recorded(environ, start_response)

        return choose

    module.traced = by_request


wrapt.register_post_import_hook(_by_request, "fastio.trace.wsgi")
