"""The types of what :func:`fastio.patch` takes and returns: for type checkers, nothing imports this at run time."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar

from fastio.report import Report

_F = TypeVar("_F", bound=Callable[..., Any])

#: Bytes, or as text such as ``"64KiB"``.
Size: TypeAlias = int | str
#: Names of patches, also as text with commas between them.
Names: TypeAlias = str | Iterable[str]
Path: TypeAlias = str | PathLike[str]
Switch: TypeAlias = bool | int | str


class Keywords(TypedDict, total=False):
    """The settings that are keyword arguments: those of ``fastio.config.SETTINGS``."""

    chunk_size: Size
    pipe_size: Size
    yield_bytes: Size
    store_chunk_size: Size | None
    store_chunk_sizes: str | Mapping[str, Size]
    transfers: int | str
    transfer_memory: Size
    trace: Path | None
    trace_buffer: Size
    trace_file_size: Size
    trace_total_size: Size
    trace_context: Switch
    disabled: Names
    also: Names
    site_fingerprints: Path | None
    enabled: Switch
    on_error: str
    profile: str
    verbose: Switch
    run_dir: Path | None
    metrics_textfile: Path | None
    metrics_statsd: str | None
    metrics_opentelemetry: Switch
    metrics_interval: int | str


class Patched(Protocol):
    """What :func:`fastio.patched` returns: a context manager, and a decorator."""

    def __enter__(self) -> Report: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> bool | None: ...

    def __call__(self, function: _F, /) -> _F: ...
