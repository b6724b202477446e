"""``fix_green_encoding``: encoding and errors of a green Popen."""

from typing import Any

import pytest

from tests.child import PIPES, command

pytest.importorskip("eventlet")

from eventlet.green import subprocess as green  # noqa: E402

OPTIONS: list[dict[str, Any]] = [
    {"encoding": "latin-1"},
    {"encoding": "utf-16"},
    {"encoding": "utf-8", "errors": "replace"},
    {"encoding": "ascii", "errors": "backslashreplace"},
    {"errors": "surrogateescape"},
    {"errors": "ignore"},
    {"text": True},
    {"universal_newlines": True},
    {"text": True, "encoding": "cp1252", "errors": "strict"},
    {"encoding": "utf-8", "bufsize": 1},
    {"encoding": "utf-8", "bufsize": 100},
]


@pytest.mark.no_fast_path(reason="nothing is moved")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_streams_are_as_natively(patched: Any, native_subprocess: Any, options: dict[str, Any]) -> None:
    def streams(module: Any) -> list[Any]:
        popen = module.Popen(command("exit:0"), **PIPES, **options)
        found = [(type(stream), stream.encoding, stream.errors) for stream in (popen.stdin, popen.stdout, popen.stderr)]
        popen.communicate()
        return found

    assert streams(green) == streams(native_subprocess)


def test_reading_and_writing_the_streams(patched: Any) -> None:
    popen = green.Popen(command("echo"), **PIPES, encoding="utf-16-le", errors="strict")
    popen.stdin.write("aä€\n")
    popen.stdin.close()
    assert popen.stdout.read() == "aä€\n"
    assert popen.wait() == 0


@pytest.mark.no_fast_path(reason="nothing is started")
def test_an_unknown_encoding_is_as_natively(patched: Any, native_subprocess: Any) -> None:
    for module in (native_subprocess, green):
        with pytest.raises(LookupError):
            module.Popen(command("exit:0"), **PIPES, encoding="no such encoding")
