"""Names of settings that fastio does not know: each is reported once, with the one that was meant."""

import pathlib

import pytest

from tests.conftest import RunPython

VARIABLE = "fastio: environment FASTIO_CHUNKSIZE: there is no such setting; did you mean 'FASTIO_CHUNK_SIZE'?"


def test_a_variable_is_reported_once_and_stays_in_the_report(run_python: RunPython) -> None:
    env = {
        "FASTIO_CHUNKSIZE": "1",
        "FASTIO_QUUXQUUXQUUXQUUX": "1",
        "FASTIO_LOAD_PROCESSES": "2",
        "FASTIO_PIPE_SIZE": "64KiB",
    }
    done = run_python("import fastio; fastio.patch(); fastio.patch(); print(fastio.status())", env=env)
    assert done.stderr.splitlines() == [
        VARIABLE,
        "fastio: environment FASTIO_QUUXQUUXQUUXQUUX: there is no such setting",
    ]
    assert VARIABLE.removeprefix("fastio: ") in done.stdout and "LOAD" not in done.stdout


@pytest.mark.parametrize("how", ["import fastio.auto", "import fastio; fastio.patch(); before = True"])
def test_options_of_the_service_s_files(how: str, run_python: RunPython, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("oslo_config")
    file, directory = tmp_path / "service.conf", tmp_path / "conf.d"
    file.write_text("[fastio]\nchunksize = 1\nchunk_size = 64KiB\n[other]\nx = y\n")
    directory.mkdir()
    (directory / "more.conf").write_text("[fastio]\nqux = 1\n")
    done = run_python(
        f"""
        import sys
        {how}
        from oslo_config import cfg
        cfg.CONF(sys.argv[1:])
        if "before" in globals():
            fastio.patch(conf=cfg.CONF)
        cfg.CONF.reload_config_files()
        """,
        *("--config-file", str(file), "--config-dir", str(directory)),
    )
    assert done.stderr.splitlines() == [
        f"fastio: oslo.config [fastio] chunksize ({file}): there is no such option; did you mean 'chunk_size'?",
        f"fastio: oslo.config [fastio] qux ({directory}/more.conf): there is no such option",
    ]
