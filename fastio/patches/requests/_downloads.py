"""What the patches of clients share that download through requests."""

from typing import Any

from fastio.counters import Tally


class Caller:
    """Stands for ``real`` in one call of a function of upstream's that gets its response from ``real.method()``.

    Responses that are streamed are read fast; everything else is ``real``'s. So nothing is changed that others see, and
    responses that go elsewhere stay as they are.

    :param counts: of the patch that it is for
    :param joined: whether the pieces may be larger than upstream asks for: nobody sees them but a file
    """

    def __init__(self, real: Any, method: str, counts: Tally, joined: bool) -> None:
        def call(*args: Any, **kwargs: Any) -> Any:
            from fastio.io import http_bodies

            response = getattr(real, method)(*args, **kwargs)
            if kwargs.get("stream"):
                http_bodies.stream_large(response, counts, joined)
            return response

        vars(self).update({"_caller_of": real, method: call})

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_caller_of"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_caller_of"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(vars(self)["_caller_of"], name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return vars(self)["_caller_of"].__class__

    def __repr__(self) -> str:
        return repr(vars(self)["_caller_of"])
