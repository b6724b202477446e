"""The options of oslo.config: the service's configuration files reach the settings."""

import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio import config
from fastio.config import KIB, MIB, SETTINGS
from fastio.errors import PatchError, SettingError

cfg = pytest.importorskip("oslo_config.cfg")


@pytest.fixture(autouse=True)
def options_before() -> Iterator[None]:
    before = config.options(), config.in_force()
    yield
    config.put_options(before[0])
    config.put_in_force(before[1])


@pytest.fixture
def make_conf(tmp_path: pathlib.Path) -> Callable[..., Any]:
    def make(*lines: str) -> Any:
        path = tmp_path / "service.conf"
        path.write_text("\n".join(("[fastio]", *lines)) + "\n")
        conf = cfg.ConfigOpts()
        conf(["--config-file", str(path)])
        return conf

    return make


def test_the_file_wins_over_the_default_and_nothing_else(
    make_conf: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTIO_TRANSFERS", "7")
    conf = make_conf("chunk_size = 64 KiB", "store_chunk_sizes = s3=256KiB,rbd=8MiB", "disabled = wait, oslo_spawn",
                     "transfers = 8", "yield_bytes = 128KiB")  # fmt: skip
    with fastio.patched(conf=conf, yield_bytes="256KiB") as report:
        settings = fastio.settings()
        assert (settings.transfers, settings.yield_bytes) == (7, 256 * KIB)
        assert settings.chunk_size == 64 * KIB
        assert settings.store_chunk_sizes == {"s3": 256 * KIB, "rbd": 8 * MIB}
        assert settings.disabled == ("wait", "oslo_spawn")
        assert "wait" not in {entry.name for entry in report.entries}
        for name in ("chunk_size", "store_chunk_sizes", "disabled"):
            assert f"[fastio] {name}" in settings.sources[name]
            assert "service.conf" in settings.sources[name]
        assert settings.sources["pipe_size"] == "default"
        assert "service.conf" in str(fastio.status())


def test_a_later_call_keeps_the_options_and_leaving_the_context_forgets_them(make_conf: Callable[..., Any]) -> None:
    with fastio.patched("communicate", conf=make_conf("chunk_size = 64KiB")):
        fastio.patch("communicate")
        assert fastio.settings().chunk_size == 64 * KIB
    assert fastio.settings().chunk_size == MIB


@pytest.mark.parametrize("switch", ["false", "0", "off"])
def test_the_file_may_switch_fastio_off(make_conf: Callable[..., Any], switch: str) -> None:
    with fastio.patched(conf=make_conf(f"enabled = {switch}")) as report:
        assert report.entries == []


def test_a_bad_value_names_the_file_and_changes_nothing(make_conf: Callable[..., Any]) -> None:
    with fastio.patched("communicate", conf=make_conf("chunk_size = 64KiB")):
        with pytest.raises(SettingError, match=r"12 parsecs.*\[fastio\] chunk_size .*service.conf.*from 4 KiB"):
            fastio.patch(conf=make_conf("chunk_size = 12 parsecs"))
        fastio.patch("communicate")
        assert fastio.settings().chunk_size == 64 * KIB


def test_a_strict_failure_forgets_the_options(make_conf: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def strange(self: Any) -> None:
        pass

    with monkeypatch.context() as changed, pytest.raises(PatchError):
        changed.setattr(subprocess.Popen, "_communicate", strange)
        fastio.patch("communicate", strict=True, conf=make_conf("chunk_size = 64KiB"))
    assert config.options() == {}


def test_the_generator_of_sample_files_knows_every_setting(tmp_path: pathlib.Path) -> None:
    sample = tmp_path / "sample.conf"
    command = [sys.executable, "-m", "oslo_config.generator", "--namespace", "fastio", "--output-file", str(sample)]
    subprocess.run(command, check=True, timeout=100)
    text = sample.read_text()
    assert "[fastio]" in text
    for setting in SETTINGS:
        assert f"#{setting.name} = " in text


def test_a_sample_with_its_values_uncommented_is_what_is_without_it(tmp_path: pathlib.Path) -> None:
    for _, options in config.list_opts():
        for option in options:
            if option.sample_default != "<none>":
                (setting,) = [setting for setting in SETTINGS if setting.name == option.name]
                assert setting.read(option.sample_default, "sample") == setting.default
