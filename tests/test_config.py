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
from tests.targets import attributes, import_targets

SIZES = ("chunk_size", "pipe_size", "yield_bytes")
TABLE = {setting.name: setting for setting in SETTINGS}
MISSING = object()


@pytest.mark.parametrize(
    ("given_value", "size"),
    [
        (65536, 65536), ("65536", 65536), ("64KiB", 65536), ("64k", 65536), ("64K", 65536), ("64 kib", 65536),
        ("64kB", 64000), ("1 MiB", MIB), ("1M", MIB), ("1m", MIB), ("1MB", 1_000_000), ("  2 MiB  ", 2 * MIB),
        ("100B", 100), ("100 b", 100), ("1GiB", GIB), ("1g", GIB), ("1GB", 10**9), ("0", 0), (0, 0), ("007", 7),
    ],
)  # fmt: skip
def test_sizes(given_value: int | str, size: int) -> None:
    assert parse_size(given_value) == size


@pytest.mark.parametrize(
    "value",
    ["12 parsecs", "", " ", "-1", "+1", "1.5M", "1,000", "1 000", "1e6", "0x10", "MiB", "1 Mi B", "1TiB", "١",
     "64KiB\0", "1 MiB!", 1.5, 65536.0, True, False, None, b"65536", [65536], float("nan"), object()],
)  # fmt: skip
def test_no_sizes(value: Any) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(value)


@given(st.integers(min_value=0, max_value=1 << 60))
def test_a_formatted_size_is_read_back(size: int) -> None:
    assert parse_size(format_size(size)) == size
    assert parse_size(str(size)) == size


@given(
    st.integers(min_value=0, max_value=1 << 40),
    st.sampled_from(["", "B", "K", "KiB", "KB", "M", "MiB", "MB", "G", "GiB", "GB"]),
    st.text(" \t", max_size=3), st.text(" \t", max_size=3), st.booleans(),
)  # fmt: skip
def test_spaces_and_case_do_not_count(number: int, unit: str, before: str, between: str, lower: bool) -> None:
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
        assert type(size) is int
        assert setting.minimum <= size <= setting.maximum


@pytest.mark.parametrize("name", SIZES)
def test_limits_are_part_of_what_is_allowed(name: str) -> None:
    setting = TABLE[name]
    assert setting.read(setting.minimum, "default") == setting.minimum
    assert setting.read(setting.maximum, "default") == setting.maximum
    for outside in (setting.minimum - 1, setting.maximum + 1, 0, -1, 10**30):
        with pytest.raises(SettingError):
            setting.read(outside, "default")
    for limit in (setting.minimum, setting.maximum, setting.default):
        assert format_size(limit) in setting.allowed


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_table_is_consistent(setting: config.Setting) -> None:
    assert setting.read(setting.default, "default") == setting.default
    assert setting.env.startswith("FASTIO")
    assert setting.help
    # The examples that the error gives are themselves accepted.
    for example in re.findall(r'"(.+?)"', setting.allowed):
        assert setting.default in (None, {}, (), setting.read(example, "example"))


def test_there_are_few() -> None:
    assert len(SETTINGS) <= 15
    assert set(Settings._fields) == {*TABLE, "sources"}


def test_defaults() -> None:
    settings = resolve({}, {})
    assert settings.enabled
    assert settings.disabled == ()
    assert settings.sources == {setting.name: "default" for setting in SETTINGS}
    for name in SIZES:
        assert getattr(settings, name) == TABLE[name].default


@pytest.mark.parametrize("name", SIZES)
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
    assert settings.sources[name] == source
    others = [other for other in TABLE if other != name]
    assert {settings.sources[other] for other in others} == {"default"}


@pytest.mark.parametrize("value", ["0", "false", "No", " OFF "])
@pytest.mark.parametrize("argument", [MISSING, True, False])
def test_the_kill_switch_wins_over_the_code(value: str, argument: Any) -> None:
    settings = resolve({} if argument is MISSING else {"enabled": argument}, {"FASTIO": value})
    assert not settings.enabled
    assert settings.sources["enabled"] == "environment FASTIO"


@pytest.mark.parametrize("value", ["1", "true", "Yes", " on "])
def test_the_environment_does_not_switch_on_what_the_code_switches_off(value: str) -> None:
    assert resolve({}, {"FASTIO": value}).enabled
    assert not resolve({"enabled": False}, {"FASTIO": value}).enabled


@pytest.mark.parametrize("value", ["maybe", "2", "-", 2, 1.0, None, b"1", []])
def test_no_switches(value: Any) -> None:
    with pytest.raises(SettingError, match="enabled") as raised:
        resolve({"enabled": value}, {})
    assert "1, true, yes, on or 0, false, no, off" in str(raised.value)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("wait", ("wait",)), ("wait,communicate", ("wait", "communicate")),
        (" wait , ,communicate,", ("wait", "communicate")), ("", ()), (",", ()),
        (["wait"], ("wait",)), (("wait", "communicate"), ("wait", "communicate")), ([], ()),
    ],
)  # fmt: skip
def test_disabled_names(value: Any, names: tuple[str, ...]) -> None:
    assert resolve({"disabled": value}, {}).disabled == names


@pytest.mark.parametrize("value", [5, None, [5], b"wait", ["wait", ["communicate"]]])
def test_no_disabled_names(value: Any) -> None:
    with pytest.raises(SettingError, match="disabled"):
        resolve({"disabled": value}, {})


def test_disabled_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTIO_DISABLED", "communicate, wait")
    with fastio.patched() as report:
        assert {"communicate", "wait"}.isdisjoint(entry.name for entry in report.entries)
        entries = [entry for entry in fastio.status().entries if entry.name in ("communicate", "wait")]
    assert entries
    for entry in entries:
        # A native class that is gone says so instead, and what an earlier test had applied is reverted.
        assert entry.outcome in (Outcome.OFF, Outcome.REVERTED, Outcome.ABSENT)
        if entry.outcome is Outcome.OFF:
            assert entry.found == "disabled by environment FASTIO_DISABLED"


@pytest.mark.parametrize("setenv", [True, False], ids=["environment", "argument"])
def test_a_disabled_name_that_does_not_exist(setenv: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if setenv:
        monkeypatch.setenv("FASTIO_DISABLED", "wait,comunicate")
    with pytest.raises(SettingError) as raised:
        given: dict[str, Any] = {} if setenv else {"disabled": "wait,comunicate"}
        fastio.patch(**given)
    text = str(raised.value)
    assert "comunicate" in text
    assert ("environment FASTIO_DISABLED" if setenv else "keyword argument") in text
    for name in fastio.names():
        assert name in text


@pytest.mark.parametrize(
    ("arguments", "environ", "parts"),
    [
        ({"chunk_size": "12 parsecs"}, {},
         ["chunk_size", "'12 parsecs'", "keyword argument", "from 4 KiB to 256 MiB", "1048576"]),
        ({}, {"FASTIO_PIPE_SIZE": "12 parsecs"},
         ["pipe_size", "'12 parsecs'", "environment FASTIO_PIPE_SIZE", "from 4 KiB to 1 GiB"]),
        ({"yield_bytes": -1}, {}, ["yield_bytes", "-1", "keyword argument", "from 4 KiB to 256 MiB"]),
        ({"yield_bytes": None}, {}, ["yield_bytes", "None", "keyword argument"]),
        ({"chunk_size": ""}, {}, ["chunk_size", "''", "keyword argument"]),
        ({}, {"FASTIO": "maybe"}, ["enabled", "'maybe'", "environment FASTIO", "true"]),
        ({"store_chunk_sizes": "*=12 parsecs"}, {},
         ["store_chunk_sizes", "'*=12 parsecs'", "keyword argument", "from 4 KiB to 256 MiB"]),
        ({"transfers": "12 parsecs"}, {}, ["transfers", "'12 parsecs'", "a whole number from 1 to 65536"]),
        ({"transfers": 0}, {}, ["transfers", "0", "a whole number from 1 to 65536"]),
        ({"trace_context": "maybe"}, {}, ["trace_context", "'maybe'", "1, true, yes, on or 0, false, no, off"]),
        ({}, {"FASTIO_PROFILE": "fast"}, ["profile", "'fast'", "environment FASTIO_PROFILE", "default or safe"]),
        ({}, {"FASTIO_ON_ERROR": "ignore"}, ["on_error", "'ignore'", "refuse or unpatched"]),
        ({}, {"FASTIO_STORE_CHUNK_SIZES": "s3=256KiB,tape=1MiB"},
         ["store_chunk_sizes", "tape", "environment FASTIO_STORE_CHUNK_SIZES", "s3=256KiB,rbd=8MiB", "vmware"]),
        ({"store_chunk_sizes": {"s3": 0}}, {}, ["store_chunk_sizes", "{'s3': 0}", "from 4 KiB to 256 MiB"]),
        ({"store_chunk_sizes": "s3=1MiB,s3=2MiB"}, {}, ["store_chunk_sizes", "each at most once"]),
        ({"store_chunk_sizes": "s3"}, {}, ["store_chunk_sizes", "'s3'"]),
        ({"store_chunk_sizes": 65536}, {}, ["store_chunk_sizes", "65536"]),
        ({"store_chunk_sizes": {3: 65536}}, {}, ["store_chunk_sizes", "{3: 65536}"]),
        ({"chunksize": 65536}, {}, ["chunksize", "65536", "keyword argument", "mean 'chunk_size'?", *TABLE]),
    ],
)  # fmt: skip
def test_errors_name_setting_value_source_and_what_is_allowed(
    arguments: dict[str, Any], environ: dict[str, str], parts: list[str]
) -> None:
    with pytest.raises(SettingError) as raised:
        resolve(arguments, environ)
    error = raised.value
    assert isinstance(error, FastioError)
    assert isinstance(error, ValueError)
    for part in parts:
        assert part in str(error)
    assert error.setting == parts[0]
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.setting, again.source) == (str(error), error.setting, error.source)


@pytest.mark.parametrize(
    "value", [{"s3": "256KiB", "rbd": 8 * MIB}, "s3=256KiB,rbd=8MiB", " s3 = 256 KiB, rbd=8M ,"], ids=str
)
def test_sizes_of_stores(value: Any) -> None:
    expected = {"s3": 256 * KIB, "rbd": 8 * MIB}
    assert resolve({"store_chunk_sizes": value}, {}).store_chunk_sizes == expected
    if isinstance(value, str):
        assert resolve({}, {"FASTIO_STORE_CHUNK_SIZES": value}).store_chunk_sizes == expected


def test_the_size_of_all_other_stores() -> None:
    settings = resolve({"store_chunk_sizes": "*=1MiB, rbd=8M"}, {})
    assert [settings.store_chunk_size(name) for name in ("rbd", "s3")] == [8 * MIB, MIB]
    assert resolve({"store_chunk_sizes": "rbd=8M"}, {}).store_chunk_size("s3") is None


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("transfers", 1024, "1024"), ("chunk_size", 1024, "1 KiB"), ("trace_context", True, "yes"),
        ("trace", None, "-"),
        ("store_chunk_sizes", {"*": MIB, "s3": 100}, "*=1 MiB, s3=100"), ("disabled", ("wait", "x"), "wait, x"),
        ("also", (), "-"), ("profile", "safe", "safe"),
    ],
)  # fmt: skip
def test_what_people_see_of_a_value(name: str, value: Any, shown: str) -> None:
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
    assert outcomes <= {Outcome.OFF, Outcome.REVERTED, Outcome.ABSENT, Outcome.NOT_NEEDED}


def test_an_error_leaves_what_was_applied_before_and_its_settings() -> None:
    with fastio.patched("communicate", chunk_size="32KiB"):
        before = attributes()
        with pytest.raises(SettingError):
            fastio.patch(chunk_size="12 parsecs")
        assert attributes() == before
        assert fastio.settings().chunk_size == 32 * KIB


def test_new_settings_hold_at_once() -> None:
    with fastio.patched("communicate"):
        fastio.patch("communicate", chunk_size="8KiB", pipe_size="16 KiB")
        settings = fastio.settings()
        assert (settings.chunk_size, settings.pipe_size) == (8 * KIB, 16 * KIB)
        assert settings.sources["chunk_size"] == "keyword argument"
        assert settings.sources["yield_bytes"] == "default"


def test_what_new_settings_disable_is_taken_back() -> None:
    import_targets()
    originals = attributes()
    with fastio.patched():
        names = ["fix_green_epipe", "green_wait", "wait", "communicate"]
        gone = [entry.target for entry in fastio.status().entries if entry.in_effect and entry.name in names]
        report = fastio.patch(disabled=names)
        assert not [entry for entry in fastio.status().entries if entry.in_effect and entry.name in names]
        own = [entry for entry in report.entries if entry.name in names and entry.target in gone]
        assert own and {entry.outcome for entry in own} == {Outcome.REVERTED}
        fastio.patch(enabled=False)
        assert not [entry for entry in fastio.status().entries if entry.in_effect]
        assert attributes() == originals


def test_settings_before_any_patch_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    config.put_in_force(None)
    monkeypatch.setenv("FASTIO_CHUNK_SIZE", "8KiB")
    settings = fastio.settings()
    assert settings.chunk_size == 8 * KIB
    assert settings.sources["chunk_size"] == "environment FASTIO_CHUNK_SIZE"


def test_unknown_patch_names_are_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownPatchError) as raised:
        fastio.unpatch("comunicate")
    assert isinstance(raised.value, FastioError)
    assert raised.value.name == "comunicate"
    for name in ("comunicate", *fastio.names()):
        assert name in str(raised.value)
