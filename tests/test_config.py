"""The settings: what is accepted, which source wins, and how clear the errors are."""

import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastio
from fastio import config
from fastio.config import GIB, KIB, MIB, SETTINGS, Settings, format_size, parse_size, resolve
from fastio.errors import FastioError, SettingError, UnknownPatchError
from fastio.report import Outcome
from tests.targets import attributes

LIMITS = {"chunk_size": (4 * KIB, 256 * MIB), "pipe_size": (4 * KIB, GIB), "yield_bytes": (4 * KIB, 256 * MIB)}
TABLE = {setting.name: setting for setting in SETTINGS}
MISSING = object()


@pytest.mark.parametrize(
    ("given_value", "size"),
    [
        (65536, 65536), ("65536", 65536), ("64KiB", 65536), ("64k", 65536), ("64 kib", 65536), ("64kB", 64000),
        ("1M", MIB), ("1MB", 1_000_000), ("  2 MiB  ", 2 * MIB), ("100 b", 100), ("1g", GIB), ("1GB", 10**9),
        ("0", 0), (0, 0), ("007", 7),
    ],
)  # fmt: skip
def test_a_size_is_read_in_all_units(given_value: int | str, size: int) -> None:
    assert parse_size(given_value) == size


@pytest.mark.parametrize(
    "value",
    ["12 parsecs", "", " ", "-1", "+1", "1.5M", "1,000", "1 000", "1e6", "0x10", "MiB", "1 Mi B", "1TiB", "١",
     "64KiB\0", "1 MiB!", 1.5, 65536.0, True, False, None, b"65536", [65536], float("nan"), object()],
)  # fmt: skip
def test_a_malformed_size_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(value)


@given(
    st.integers(min_value=0, max_value=1 << 60),
    st.sampled_from(["", "B", "K", "KiB", "KB", "M", "MiB", "MB", "G", "GiB", "GB"]),
    st.text(" \t", max_size=3), st.text(" \t", max_size=3), st.booleans(),
)  # fmt: skip
def test_a_formatted_size_is_read_back(number: int, unit: str, before: str, between: str, lower: bool) -> None:
    assert parse_size(format_size(number)) == parse_size(str(number)) == number
    text = f"{before}{number}{between}{unit.lower() if lower else unit}{before}"
    assert parse_size(text) == parse_size(f"{number}{unit}") == number * parse_size(f"1{unit}")


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.none(), st.booleans(), st.lists(st.integers())))
def test_any_value_is_a_size_within_its_limits_or_a_clear_error(value: Any) -> None:
    setting = TABLE["chunk_size"]
    try:
        size = setting.read(value, "keyword argument")
    except SettingError as error:
        assert (error.setting, error.source, error.allowed) == ("chunk_size", "keyword argument", setting.allowed)
        assert error.value is value
    else:
        assert type(size) is int and 4 * KIB <= size <= 256 * MIB


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_part_of_what_is_allowed(name: str) -> None:
    setting, limits = TABLE[name], LIMITS[name]
    assert [setting.read(limit, "default") for limit in limits] == [*limits]
    for outside in (limits[0] - 1, limits[1] + 1, 0, -1, 10**30):
        with pytest.raises(SettingError):
            setting.read(outside, "default")
    for limit in (*limits, setting.default):
        assert format_size(limit) in setting.allowed


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_table_is_consistent(setting: config.Setting) -> None:
    assert setting.read(setting.default, "default") == setting.default
    assert setting.env.startswith("FASTIO") and setting.help
    # The examples that the error gives are themselves accepted.
    for example in re.findall(r'"(.+?)"', setting.allowed):
        assert setting.default in (None, {}, (), setting.read(example, "example"))


def test_defaults() -> None:
    settings = resolve({}, {})
    assert len(SETTINGS) <= 15 and set(Settings._fields) == {*TABLE, "sources"}
    assert settings == Settings(
        **{name: setting.default for name, setting in TABLE.items()}, sources=dict.fromkeys(TABLE, "default")
    )


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("argument", [MISSING, "128KiB"])
@pytest.mark.parametrize("environment", [MISSING, "", "256KiB"])
def test_precedence(name: str, argument: Any, environment: Any) -> None:
    settings = resolve(
        {} if argument is MISSING else {name: argument},
        {} if environment is MISSING else {f"FASTIO_{name.upper()}": environment},
    )
    if argument is not MISSING:
        expected, source = 128 * KIB, "keyword argument"
    elif environment == "256KiB":
        expected, source = 256 * KIB, f"environment FASTIO_{name.upper()}"
    else:
        # An empty variable is an unset one, as in most shells' idioms.
        expected, source = TABLE[name].default, "default"
    assert getattr(settings, name) == expected
    assert settings.sources == {**dict.fromkeys(TABLE, "default"), name: source}


@pytest.mark.parametrize("argument", [MISSING, True, False])
@pytest.mark.parametrize(
    ("value", "on"), [*((off, False) for off in ("0", "false", "No", " OFF ")), ("1", True), (" on ", True)]
)
def test_the_kill_switch_wins_over_the_code_but_does_not_switch_on(value: str, on: bool, argument: Any) -> None:
    settings = resolve({} if argument is MISSING else {"enabled": argument}, {"FASTIO": value})
    assert settings.enabled is (on and argument is not False)
    assert on or settings.sources["enabled"] == "environment FASTIO"


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        *(("disabled", given, read) for given, read in (
            ("wait", ("wait",)), (" wait , ,communicate,", ("wait", "communicate")), ("", ()), (",", ()),
            (["wait"], ("wait",)), (("wait", "communicate"), ("wait", "communicate")), ([], ()),
        )),
        *(("store_chunk_sizes", each, {"s3": 256 * KIB, "rbd": 8 * MIB}) for each in (
            {"s3": "256KiB", "rbd": 8 * MIB}, "s3=256KiB,rbd=8MiB", " s3 = 256 KiB, rbd=8M ,",
        )),
        ("profile", " Safe ", "safe"), ("transfers", " 7 ", 7), ("enabled", "ON", True),
    ],
)  # fmt: skip
def test_values_are_read_alike_from_keywords_and_environment(name: str, value: Any, read: Any) -> None:
    assert getattr(resolve({name: value}, {}), name) == read
    if isinstance(value, str) and value:
        assert getattr(resolve({}, {TABLE[name].env: value}), name) == read


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("enabled", ("maybe", "2", "-", 2, 1.0, None, b"1", []), ["1, true, yes, on or 0, false, no, off"]),
        ("disabled", (5, None, [5], b"wait", ["wait", ["communicate"]]), ["names of patches"]),
        ("chunk_size", ("12 parsecs", "", 0), ["from 4 KiB to 256 MiB", "1048576"]),
        ("pipe_size", ("12 parsecs",), ["from 4 KiB to 1 GiB"]),
        ("yield_bytes", (-1, None), ["from 4 KiB to 256 MiB"]),
        ("transfers", ("12 parsecs", 0, 65537, 1.0, True), ["a whole number from 1 to 65536"]),
        *((name, ("", "/proc/version", "/proc/version/x", "a\0b", 5), ["a directory that can be written to"])
          for name in ("run_dir", "trace")),
        ("profile", ("fast", 1), ["default or safe"]), ("on_error", ("ignore",), ["refuse or unpatched"]),
        ("store_chunk_sizes",
         ("*=12 parsecs", "s3=256KiB,tape=1MiB", {"s3": 0}, "s3=1MiB,s3=2MiB", "s3", 65536, {3: 65536}),
         ["from 4 KiB to 256 MiB", "s3=256KiB,rbd=8MiB", "vmware", "each at most once"]),
    ],
)  # fmt: skip
def test_errors_name_setting_value_source_and_what_is_allowed(name: str, values: Any, allowed: list[str]) -> None:
    for value in values:
        given: list[tuple[Any, Any, str]] = [({name: value}, {}, "keyword argument")]
        if isinstance(value, str) and value:
            given.append(({}, {TABLE[name].env: value}, f"environment {TABLE[name].env}"))
        for arguments, environ, source in given:
            with pytest.raises(SettingError) as raised:
                resolve(arguments, environ)
            error = raised.value
            assert isinstance(error, FastioError) and isinstance(error, ValueError)
            assert str(error).startswith(f"{name}: {value!r} (from {source}) is not allowed; allowed: ")
            for part in allowed:
                assert part in error.allowed
            again = pickle.loads(pickle.dumps(error))
            assert (str(again), again.setting, again.source) == (str(error), name, source)


def test_an_unknown_setting_is_reported_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match="chunksize: 65536 .*keyword argument.* mean 'chunk_size'") as raised:
        resolve({"chunksize": 65536}, {})
    assert all(name in str(raised.value) for name in TABLE)


def test_the_size_of_all_other_stores() -> None:
    settings = resolve({"store_chunk_sizes": "*=1MiB, rbd=8M"}, {})
    assert [settings.store_chunk_size(name) for name in ("rbd", "s3")] == [8 * MIB, MIB]
    assert resolve({"store_chunk_sizes": "rbd=8M"}, {}).store_chunk_size("s3") is None


@pytest.mark.parametrize(
    ("setting", "name", "allowed"),
    [
        ("disabled", "comunicate", "all, or names of patches: "),
        *(("also", name, "names of patches: ") for name in ("glance_slow_client", "all", "trace_hub")),
    ],
)
@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_name_that_does_not_exist(
    setting: str, name: str, allowed: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, text = attributes(), f"wait, {name}"
    if how == "environment":
        monkeypatch.setenv(TABLE[setting].env, text)
    with pytest.raises(SettingError) as raised:
        fastio.patch(**({setting: text} if how == "argument" else {}))  # type: ignore[arg-type]
    error = raised.value
    assert (error.setting, error.value) == (setting, name)
    assert error.source == ("keyword argument" if how == "argument" else f"environment {TABLE[setting].env}")
    assert error.allowed.startswith(allowed) and all(each in error.allowed for each in fastio.names())
    assert attributes() == before


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("transfers", 1024, "1024"), ("chunk_size", 1024, "1 KiB"), ("enabled", True, "yes"),
        ("trace", None, "-"),
        ("store_chunk_sizes", {"*": MIB, "s3": 100}, "*=1 MiB, s3=100"), ("disabled", ("wait", "x"), "wait, x"),
        ("also", (), "-"), ("profile", "safe", "safe"),
    ],
)  # fmt: skip
def test_the_text_of_a_value(name: str, value: Any, shown: str) -> None:
    assert TABLE[name].show(value) == shown


@pytest.mark.parametrize("value", ["9" * 5000, "x" * 5000, 10**5000], ids=["digits", "letters", "integer"])
def test_an_error_stays_readable_whatever_the_value(value: Any) -> None:
    with pytest.raises(SettingError) as raised:
        resolve({"chunk_size": value}, {})
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("call", "environ"),
    [
        (lambda: fastio.patch(chunk_size="12 parsecs"), {}),
        (lambda: fastio.patch("communicate", pipe_size=0), {}),
        (lambda: fastio.patch(pipe="1M"), {}),  # type: ignore[call-arg]
        (lambda: fastio.patch(disabled="nothing"), {}),
        (lambda: fastio.patch("nothing"), {}),
        (lambda: fastio.patch(["communicate", "nothing"]), {}),
        (fastio.patch, {"FASTIO_CHUNK_SIZE": "-1"}),
        (fastio.patch, {"FASTIO": "sometimes"}),
        (fastio.patch, {"FASTIO_DISABLED": "communicate;wait"}),
        (lambda: fastio.patched(yield_bytes=True).__enter__(), {}),
    ],
)
def test_nothing_is_patched_after_an_error(call: Any, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = attributes()
    settings = config.in_force()
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((SettingError, UnknownPatchError)):
        call()
    for name in environ:
        monkeypatch.delenv(name)
    assert attributes() == before
    assert config.in_force() is settings
    outcomes = {entry.outcome for entry in fastio.status().entries}
    assert outcomes <= {Outcome.OFF, Outcome.ABSENT}


def test_an_error_leaves_what_was_applied_before_and_its_settings() -> None:
    with fastio.patched("communicate", chunk_size="32KiB"):
        before = attributes()
        with pytest.raises(SettingError):
            fastio.patch(chunk_size="12 parsecs")
        assert attributes() == before
        assert fastio.settings().chunk_size == 32 * KIB


def test_settings_before_any_patch_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    config.put_in_force(None)
    monkeypatch.setenv("FASTIO_CHUNK_SIZE", "8KiB")
    settings = fastio.settings()
    assert settings.chunk_size == 8 * KIB
    assert settings.sources["chunk_size"] == "environment FASTIO_CHUNK_SIZE"
