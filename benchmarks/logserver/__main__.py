"""Serve logs: ``python -m benchmarks.logserver --root DIRECTORY --swift ACCESS.json --port PORT``.

It monkey patches itself for eventlet, as services do. With fastio: ``fastio run -m benchmarks.logserver ...``; its
requests are traced with ``fastio run --trace DIRECTORY -m benchmarks.logserver ...``.
"""

import eventlet

eventlet.monkey_patch()

import json  # noqa: E402 (eventlet also patches later imports, but not earlier copies)
import logging  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import eventlet.wsgi  # noqa: E402

import fastio  # noqa: E402
from benchmarks.logserver.application import Application, Source  # noqa: E402
from benchmarks.logserver.sources import Disk, Swift  # noqa: E402
from fastio import terminal  # noqa: E402
from fastio.arguments import Parser  # noqa: E402
from fastio.config import parse_size  # noqa: E402
from fastio.trace import spans, wsgi  # noqa: E402

#: Bytes that are read from a source at a time: that of glance_store's Swift driver.
CHUNK_SIZE = 64 << 10
#: Mandatory keys of Swift's access.
NEEDED = ("auth_v1", "user", "key", "container")


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.logserver", description="Serve logs over HTTP.")
    parser.add_argument("--root", required=True, metavar="DIRECTORY", help="of the logs on the disk")
    parser.add_argument("--swift", type=Path, metavar="FILE", help=f"JSON with {', '.join(NEEDED)}")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="by default any that is free; the URL is printed")
    parser.add_argument("--chunk-size", type=parse_size, default=CHUNK_SIZE, metavar="SIZE",
                        help="of a read, such as 64KiB")  # fmt: skip
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING)
    sources: dict[str, Source] = {"disk": Disk(chosen.root, chosen.chunk_size)}
    if chosen.swift is not None:
        access = json.loads(chosen.swift.read_text())
        missing = [name for name in NEEDED if name not in access]
        if missing:
            parser.error(f"--swift {chosen.swift}: no {', '.join(missing)} in it")
        sources["swift"] = Swift(access, chosen.chunk_size)
    listener = eventlet.listen((chosen.host, chosen.port))
    ready = {"url": f"http://{chosen.host}:{listener.getsockname()[1]}", "fastio": _status()}
    print(json.dumps(ready), flush=True)
    # A traceback is for the log, not for who asks.
    application: Any = Application(sources)
    if spans.is_on():
        application = wsgi.traced(application, "log-server")
    eventlet.wsgi.server(listener, application, log_output=False, debug=False)
    return 0


def _status() -> dict[str, Any] | None:
    """Return the state of fastio here, None if it is off."""
    report = fastio.status()
    return report.to_dict() if any(entry.in_effect for entry in report.entries) else None


if __name__ == "__main__":
    sys.exit(main())
