"""The front doors: what CONTRIBUTING.rst, SECURITY.rst and the page on versions say can be done, and is so."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.packaging.test_metadata import SETUP

ROOT = Path(__file__).parents[2]
FRONT = ("CONTRIBUTING.rst", "SECURITY.rst", "doc/source/versions.rst")
CONTRIBUTING = (ROOT / FRONT[0]).read_text(encoding="utf-8")
PAGES = [*ROOT.glob("*.rst"), *(
    path for path in (ROOT / "doc" / "source").rglob("*.rst") if "generated" not in path.parts
)]  # fmt: skip


def section(text: str, title: str) -> str:
    """Return the text below a title, up to the next one."""
    (found,) = re.findall(rf"^{title}\n=+\n(.*?)(?=^\S[^\n]*\n===|\Z)", text, re.MULTILINE | re.DOTALL)
    return found


def commands(text: str) -> list[str]:
    """The lines of its literal blocks, without comments."""
    blocks = re.findall(r"::\n\n((?:[ ]+\S.*\n|\n)+)", text)
    lines = [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_recipe_for_one_test_works() -> None:
    natively, green, elsewhere = commands(section(CONTRIBUTING, "Running one test"))
    assert green == natively.replace("TEST_EVENTLET=0", "TEST_EVENTLET=1")
    variable, _, command = natively.partition(" ")
    assert command.startswith(".venv/bin/python ")
    done = subprocess.run(
        [sys.executable, *command.split()[1:]], cwd=ROOT, env={**os.environ, **dict([variable.split("=")])},
        stdout=subprocess.PIPE, text=True, timeout=100,
    )  # fmt: skip
    assert " passed" in done.stdout
    assert elsewhere.endswith(command.partition(" pytest ")[2])


def test_the_setup_installs_what_there_is() -> None:
    extras = re.findall(r"'\.\[(.*?)\]'", section(CONTRIBUTING, "Setting up"))[0].split(",")
    assert set(extras) <= set(SETUP["options.extras_require"])


def named(pattern: str) -> set[str]:
    """The names in the pages that are like this."""
    return {name for page in PAGES for name in re.findall(pattern, page.read_text(encoding="utf-8"))}


def test_the_environments_exist() -> None:
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    names = {name for names in named(r"tox -e ([\w,-]+)") for name in names.split(",")}
    assert len(names) > 10 and all(f"[testenv:{name}]" in tox or re.fullmatch(r"py3\d+", name) for name in names)


def test_the_programs_and_pages_exist() -> None:
    modules, pages = named(r"-m (benchmarks[\w.]*\w)"), named(r"(?<![\w./-])doc/source/[\w./-]*\w")
    assert len(modules) > 5 and all(find_spec(module) for module in modules)
    assert len(pages) > 5 and all((ROOT / page).exists() for page in pages)


def test_the_places_in_the_checkout_that_are_named_are_there() -> None:
    places = r"(?:benchmarks|fastio|tests)/[\w./-]+"
    files = rf"{places}|(?:[\w-]+/)*[\w.-]+\.(?:rst|py|cfg|toml|ini|yaml)"
    found = {
        (page.name, place)
        for page, kind in (
            *((each, places) for each in PAGES),
            *((ROOT / each, files) for each in FRONT),
        )
        for place in re.findall(rf"``({kind})``", page.read_text(encoding="utf-8"))
        # Not one that stands for any of its kind.
        if not re.search(r"/[A-Z]+$", place)
    }  # fmt: skip
    assert len(found) > 10 and [each for each in sorted(found) if not (ROOT / each[1]).exists()] == []


def test_importing_and_patching_stay_in_the_process() -> None:
    """Importing and patching opens no socket and starts no process."""
    code = """
import sys
def refuse(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "os.system")):
        raise SystemExit(f"{event} {arguments}")
import subprocess, socket
sys.addaudithook(refuse)
import fastio
fastio.patch()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_installed_from_an_index_that_has_no_fastio() -> None:
    """No page advises that until there is a release: anyone could upload a fastio there."""
    # The notes of releases that there were, which become a page when the documentation is built, stay unchanged.
    pages = [*PAGES, *(ROOT / "doc").rglob("*.yml")]
    by_name = r"pip install\b.*[ '`]fastio(\[|['`]|$)|_package: fastio$"
    found = [line for page in pages for line in page.read_text("utf-8").splitlines() if re.search(by_name, line)]
    assert len(pages) > 40 and not found
    code = [path for top in ("fastio", "benchmarks", "tests") for path in (ROOT / top).rglob("*.py")]
    advice = re.compile(r"pip install ['\"]?fastio\[")
    assert [path for path in code if advice.search(path.read_text("utf-8"))] == []
