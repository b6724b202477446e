"""The known faults: all of them are about the code that is here, and what the command says of each kind of them."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

from benchmarks.tools.mutants import __main__ as command
from benchmarks.tools.mutants import listed, table, trial
from benchmarks.tools.mutants.table import Row

MUTANTS = listed.read()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_fault_is_one_of_the_code_that_is_here(mutant: listed.Mutant) -> None:
    path = listed.ROOT / mutant.file
    faulty = mutant.applied(path.read_text())
    compile(faulty, mutant.file, "exec")
    for test in mutant.tests:
        file, _, found = test.partition("::")
        name = found.rpartition("::")[2]
        assert f"def {name.partition('[')[0]}(" in (listed.ROOT / file).read_text() if name else (listed.ROOT / file)


def test_the_table_that_is_kept_is_that_of_the_list() -> None:
    """``tox -e mutants -- NAME … --table benchmarks/tools/mutants/killed.json`` brings it up to date."""
    rows = table.read(table.KEPT).values()
    assert [(row.name, row.area) for row in rows] == [(mutant.name, mutant.area) for mutant in MUTANTS]


def test_one_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["a-feed-does-not-heed-its-limit"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("killed    a-feed-does-not-heed-its-limit: tests/io/test_feed.py::test_no_more_than_the")
    assert said.splitlines()[-1].startswith("1 of 1 mutants are seen, 0 skipped; ")


SUM = """
def total(numbers):
    found = 0
    for number in numbers:
        found += number
    return found
"""

TESTS = """
import time
import pytest
from fastio.sums import total

def test_nothing():
    assert total([]) == 0

def test_some():
    assert total([1, 2]) == 3

@pytest.fixture
def summed():
    total([1])

def test_fixture(summed):
    pass

def test_wrong():
    assert total([1]) == 2

@pytest.mark.limit(0.25 * 120)
def test_slow():
    while total([1]) != 1:
        time.sleep(0.01)

@pytest.fixture
def checked():
    yield
    assert total([1]) == 1

def test_teardown(checked):
    pass

@pytest.mark.skip
def test_skipped():
    pass
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one function and its tests."""
    for folder in ("fastio", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "benchmarks").symlink_to(listed.ROOT / "benchmarks")
    (tmp_path / "fastio" / "sums.py").write_text(SUM)
    (tmp_path / "tests" / "conftest.py").write_text('pytest_plugins = ["benchmarks.tools.watchdog.plugin"]\n')
    (tmp_path / "tests" / "test_sums.py").write_text(TESTS)
    # A quarter of it is the limit of the test that hangs.
    monkeypatch.setattr(trial, "LIMIT", 20)
    return tmp_path


def mutant(name: str = "m", old: str = "found += number", new: str = "found -= number", *tests: str) -> str:
    named = ", ".join(f'"tests/test_sums.py{"::" * bool(test)}{test}"' for test in tests or ("test_some",))
    about = f'name = "{name}"\narea = "io"\nfile = "fastio/sums.py"'
    return f'[[mutant]]\n{about}\nold = "{old}"\nnew = "{new}"\ntests = [{named}]\n'


@pytest.mark.parametrize(
    ("new", "tests", "word", "detail"),
    [
        ("found -= number", ["test_some"], "killed", "tests/test_sums.py::test_some: assert -3 == 3"),
        ("found -= number", ["test_teardown"], "killed", "tests/test_sums.py::test_teardown: assert -1 == 1"),
        ("found -= number", ["test_slow"], "killed", "tests/test_sums.py::test_slow: not ended within its limit"),
        ("found -= number", ["test_nothing"], "SURVIVED", "1 tests pass with it"),
        ("found -= number", ["test_wrong"], "UNSURE", "tests/test_sums.py::test_wrong does not pass without it:"),
        ("found -= number", ["test_skipped"], "BROKEN", "no test was run; pytest ended with 0"),
        ("found += nothing", ["test_some"], "BROKEN", "tests/test_sums.py::test_some: NameError: name 'nothing'"),
        ("found += 1 / 0", ["test_fixture"], "BROKEN", "tests/test_sums.py::test_fixture: ZeroDivisionError"),
        ("found += (", ["test_some"], "BROKEN", "tests/test_sums.py: "),
    ],
)  # fmt: skip
def test_what_becomes_of_a_mutant(checkout: Path, new: str, tests: list[str], word: str, detail: str) -> None:
    (checkout / "list.toml").write_text(mutant("m", "found += number", new, *tests))
    (found,) = listed.read(checkout / "list.toml")
    with trial.Copy(checkout) as copy:
        verdict = copy.judge(found)
        assert (verdict.word, verdict.detail[: len(detail)]) == (word, detail)
        # The next one finds the code as it was.
        assert (copy.directory / "fastio" / "sums.py").read_text() == SUM


GOOD = mutant("good", "found = 0", "found = 1")
WEAK = mutant("weak", "found += number", "found -= number", "test_nothing")


@pytest.fixture
def run(checkout: Path) -> Callable[..., int]:
    """Runs the command on a list of these mutants."""

    def run(listed_: str, *arguments: str) -> int:
        (checkout / "list.toml").write_text(listed_)
        where = ["--file", str(checkout / "list.toml"), "--root", str(checkout), "--jobs", "1"]
        return command.main([*arguments, *where])

    return run


def test_the_command_the_table_and_what_is_new_against_it(
    checkout: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkout / "table.json"
    lacking = mutant("lacking") + 'needs = ["no_such_module"]\n' + mutant("later") + 'python = "3.99"\n'
    everything = GOOD + WEAK + lacking + mutant("gone", "no such text") + mutant("twice", "number")
    assert run(everything, "--list") == 0
    assert capsys.readouterr().out.split() == ["good", "weak", "lacking", "later", "gone", "twice"]
    assert run(everything, "--table", str(path)) == 1
    *lines, areas, last = capsys.readouterr().out.splitlines()
    verdicts = {
        "good": "killed", "weak": "SURVIVED", "lacking": "skipped", "later": "skipped", "gone": "STALE",
        "twice": "STALE",
    }  # fmt: skip
    assert [line.split()[:2] for line in lines] == [[word, f"{name}:"] for name, word in verdicts.items()]
    assert "only Python 3.99 and later show it" in lines[3]
    assert "fastio/sums.py has its old text 0 times, not once" in lines[4]
    assert areas == "by area: io 1 of 4"
    assert last.startswith("1 of 6 mutants are seen, 2 skipped; ")
    assert run(everything, "lacking") == 0

    rows = table.read(path)
    assert {name: row.verdict for name, row in rows.items()} == verdicts
    assert (rows["good"].area, rows["good"].by, rows["weak"].by) == ("io", "tests/test_sums.py::test_some", "")
    # A line for each of them.
    assert len(path.read_text().splitlines()) == 2 + 6
    # What it is compared with is what was there before.
    unseen = everything.replace("found = 1", "found = 0 * 1")
    assert run(unseen, "good", "weak", "--against", str(path), "--table", str(path)) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "new survivor: good: killed by tests/test_sums.py::test_some, now SURVIVED", "1 new survivors"
    ]  # fmt: skip
    assert table.read(path)["good"].verdict == "SURVIVED"
    assert run(everything, "weak", "--against", str(path)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 new survivors"


def rows(**verdicts: str) -> dict[str, Row]:
    return {name: Row(name, "io", verdict, "t" * (verdict == "killed"), 1.0) for name, verdict in verdicts.items()}


def mutants(*names: str) -> list[listed.Mutant]:
    return [listed.Mutant(name, "io", "f", "a", "b", ("t",)) for name in names]


def test_what_is_not_tried_stays_in_the_table() -> None:
    before = rows(one="killed", gone="killed", two="SURVIVED", three="killed")
    now = rows(four="SURVIVED", two="killed", three="skipped", five="skipped")
    made = table.merged(mutants("five", "four", "three", "two", "one", "none"), before, now)
    assert [(row.name, row.verdict) for row in made] == [
        ("five", "skipped"), ("four", "SURVIVED"), ("three", "killed"), ("two", "killed"), ("one", "killed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("killed", "killed", ""),
        ("killed", "skipped", ""),
        ("killed", "SURVIVED", "m: killed by t, now SURVIVED"),
        ("killed", "STALE", "m: killed by t, now STALE"),
        ("SURVIVED", "killed", ""),
        ("SURVIVED", "SURVIVED", ""),
        ("SURVIVED", "BROKEN", ""),
        ("skipped", "SURVIVED", "m: skipped, now SURVIVED"),
        (None, "killed", ""),
        (None, "UNSURE", "m: not in the table, now UNSURE"),
        ("killed", None, "m: killed by t, and gone from the list"),
        ("SURVIVED", None, ""),
    ],
)
def test_new_survivors(before: str | None, now: str | None, said: str) -> None:
    then, since = rows(**({"m": before} if before else {})), rows(**({"m": now} if now else {}))
    assert table.new_survivors(then, since, list(since)) == [said] * bool(said)


def test_a_run_that_is_interrupted_keeps_what_it_has(
    checkout: Path, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = trial.Copy.judge

    def interrupted(copy: trial.Copy, mutant: listed.Mutant) -> trial.Verdict:
        if mutant.name == "weak":
            raise KeyboardInterrupt
        return judge(copy, mutant)

    monkeypatch.setattr(trial.Copy, "judge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(GOOD + WEAK, "--table", str(checkout / "table.json"))
    assert list(table.read(checkout / "table.json")) == ["good"]


@pytest.mark.parametrize(
    "text", ["", '{"format": "fastio-mutants", "version": 99, "mutants": []}',
             '{"format": "fastio-mutants", "version": 1, "mutants": [{"name": "m"}]}'],
)  # fmt: skip
def test_what_is_no_table(
    checkout: Path, run: Callable[..., int], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkout / "table.json"
    path.write_text(text)
    for option in ("--against", "--table"):
        assert run(GOOD, option, str(path)) == 2
        assert f"{path}: no table of mutants (fastio-mutants, version 1): " in capsys.readouterr().err
    assert path.read_text() == text
    assert run(GOOD, "--against", str(checkout / "none.json")) == 2
    with pytest.raises(SystemExit):
        run(GOOD, "--table", str(checkout / "none" / "table.json"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (mutant() + mutant(), "more than one mutant is called m"),
        (mutant().replace("old", "odl"), "m: lacks old and has unknown odl"),
        (mutant().replace('name = "m"\n', ""), "a mutant without a name: lacks name"),
        (mutant().replace("io", "IO"), "m: area 'IO' is not one of public, patching, io, "),
        (mutant(new="found += number"), "m: needs tests, an old text, and a new one that differs"),
    ],
)
def test_a_list_that_is_wrong(tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list.toml").write_text(text)
    assert command.main(["--file", str(tmp_path / "list.toml")]) == 2
    assert words in capsys.readouterr().err


def test_a_name_that_is_not_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["no-such-mutant"]) == 2
    assert "no mutant is called no-such-mutant; --list shows their names" in capsys.readouterr().err
    assert command.main(["--file", "/no/such/file"]) == 2
    with pytest.raises(SystemExit):
        command.main(["--jobs", "0"])
