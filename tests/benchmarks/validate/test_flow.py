"""All of it, from a diff to a report, on a project made up for it, which nothing has to be fetched for."""

import html
import json
import re
import shutil
import site
import socket
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.tools import pythons
from benchmarks.tools.upstream import sources
from benchmarks.tools.upstream.runner import Runner
from benchmarks.tools.upstream.suites import Suite
from benchmarks.validate import __main__ as command
from benchmarks.validate import environments, projects, sandbox, suites
from tests.benchmarks.validate.test_clones import Repository
from tests.benchmarks.validate.test_diffs import diff_of, write

if shutil.which("git") is None:
    pytest.skip("git is not installed", allow_module_level=True)

SOURCE = {
    "madeup/__init__.py": "",
    "madeup/counting.py": textwrap.dedent("""\
        def total(numbers):
            # As it is.
            return sum(numbers)


        def least(numbers):
            return sorted(numbers)[-1]
        """),
    "madeup/unused.py": "unused = True\n",
    "checks/__init__.py": "",
    "checks/counting_test.py": textwrap.dedent("""\
        import os, pathlib, threading, unittest

        from madeup import counting

        class Counting(unittest.TestCase):
            def test_total(self):
                self.assertEqual(counting.total([1, 2, 3]), 6, "<b>all</b>")

            def test_of_nothing(self):
                self.assertEqual(counting.total([]), 0)

            def test_least(self):
                self.assertEqual(counting.least([1, 2]), 1)
        """),
    "NEWS": "1.0\n",
}


#: The parts of the results that CI systems take.
WRITTEN = {"summary.md", "report.html", "junit.xml", "raw.json"}
TESTS = "checks/counting_test.py"


class Installer:
    """Puts the made-up release where pip would put it."""

    def __init__(self):
        self.installed = []

    def __call__(self, made, arguments):
        self.installed.append(arguments)
        site_packages = made.site_packages
        write(site_packages, {name: text for name, text in SOURCE.items() if name.startswith("madeup/")})
        info = {"METADATA": "Metadata-Version: 2.1\nName: madeup\nVersion: 1.0\n", "RECORD": ""}
        write(site_packages / "madeup-1.0.dist-info", info)
        # pytest is this environment's.
        beside = "".join(f"import site; site.addsitedir({each!r})\n" for each in site.getsitepackages())
        write(site_packages, {"beside.pth": beside})


@pytest.fixture
def installer(monkeypatch):
    made = Installer()
    monkeypatch.setattr(environments, "install", made)
    return made


@pytest.fixture
def validate(tmp_path, monkeypatch, installer):
    """``validate(after)`` runs the command on a diff that makes these files out of the release; returns its status.

    The argument may also be the ref of a repository, a file with a diff, or any other candidate as text.
    """
    project = projects.Project(
        name="madeup", package="madeup", tests="checks", requirements=(), extras="", suites=("madeup",),
        modes=("native",), benchmarks=(), cases=(),
    )  # fmt: skip
    monkeypatch.setitem(projects.PROJECTS, "madeup", project)
    monkeypatch.setitem(suites.CONFORMANCE, "madeup", Suite("madeup", ("checks.counting_test",)))
    source = write(tmp_path / "source", SOURCE)
    monkeypatch.setattr(sources, "fetch", lambda project, version, cache: source)
    # The suite's directory is that of the release's tests, as eventlet's is.
    monkeypatch.setattr(suites, "_CONFORMANCE", None)
    stock = suites.suite_for
    monkeypatch.setattr(suites, "suite_for", lambda name, variant: _at(stock(name, variant), variant.tests))

    def run(after, *options):
        given = ["--candidate", str(tmp_path / "my.diff")]
        if isinstance(after, Repository):
            given = ["--git", str(after.path), "topic"]
        elif isinstance(after, str):
            given[1] = after
        elif isinstance(after, Path):
            Path(given[1]).write_text(after.read_text())
        else:
            Path(given[1]).write_text(diff_of(SOURCE, {**SOURCE, **after}))
        places = ["--cache", str(tmp_path / "cache"), "--results", str(tmp_path / "results")]
        return command.main(["madeup", *given, "--no-fastio", *places, *options])

    return run


def _at(suite, directory):
    return Suite(suite.name, suite.modules, place=lambda: directory)


def changed(name, old, new):
    assert old in SOURCE[name]
    return {name: SOURCE[name].replace(old, new)}


def results(tmp_path):
    (directory,) = (tmp_path / "results").iterdir()
    return directory


def test_the_broken_test_is_named(validate, tmp_path, capsys):
    assert validate(changed("madeup/counting.py", "return sum(numbers)", "return sum(numbers[:-1])")) == 1
    said = capsys.readouterr().out
    assert "candidate: madeup: checks.counting_test.Counting.test_total: pass -> fail" in said
    directory = results(tmp_path)
    summary = (directory / "summary.md").read_text()
    assert "FAILED: 1 reason" in summary
    assert "| newly fails |" in summary
    assert "candidate: tests: 1 newly fails; no benchmarks" in summary
    assert "fastio validate madeup --candidate" in summary
    page = (directory / "report.html").read_text()
    assert "AssertionError: 3 != 6 : &lt;b&gt;all&lt;/b&gt;" in page
    assert "+    return sum(numbers[:-1])" in page
    outside = re.findall(r'(?:href|src)="(?!#|data:)', page)
    assert not outside and "<script" not in page, "the report needs another file"
    assert {each.name for each in directory.iterdir()} == WRITTEN
    (failure,) = ElementTree.parse(directory / "junit.xml").iterfind("testsuite/testcase[@name='test_total']/failure")
    assert failure.get("message") == "pass -> fail" and "3 != 6 : <b>all</b>" in str(failure.text)
    raw = json.loads((directory / "raw.json").read_text())
    assert raw["variants"][1]["changed"] == ["madeup/counting.py"]
    (suite,) = raw["suites"]
    assert [each["verdict"] for each in suite["differences"]] == ["newly fails"]


def said_everywhere(tmp_path, capsys, line):
    """A line is part of all verdicts for people."""
    directory = results(tmp_path)
    assert line in capsys.readouterr().out
    assert line in " ".join((directory / "summary.md").read_text().split())
    assert html.escape(line) in (directory / "report.html").read_text()


def test_a_hostile_candidate_is_held_back(validate, tmp_path, capsys):
    """It passes all tests if it could do what it wants, and fails one for each thing that it could not."""
    if reason := sandbox.choose("auto", pythons.find("")).reason:
        pytest.skip(reason)
    (tmp_path / "secret").write_text("the password")
    (tmp_path / "secret").chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hostile = f"""\
    import os, socket
    if len(numbers) == 3:
        open({str(tmp_path / "secret")!r}).read()
    elif not numbers:
        socket.create_connection({listener.getsockname()!r}).close()
        open({str(tmp_path / "left")!r}, "w").close()
    return sum(numbers)"""
        after = changed("madeup/counting.py", "    return sum(numbers)", hostile)
        assert validate(after, "--isolation", "none") == 0
        assert (tmp_path / "left").exists()
        (tmp_path / "left").unlink()
        shutil.rmtree(tmp_path / "results")
        capsys.readouterr()
        assert validate(after, "--isolation", "bubblewrap") == 1
    said_everywhere(tmp_path, capsys, "isolation: bubblewrap ")
    assert not (tmp_path / "left").exists()
    raw = json.loads((results(tmp_path) / "raw.json").read_text())
    assert raw["isolation"]["used"] == "bubblewrap"
    (suite,) = raw["suites"]
    outcomes = {each["test"].rpartition(".")[2]: each["verdict"] for each in suite["differences"]}
    assert outcomes == {"test_total": "newly fails", "test_of_nothing": "newly fails"}
    # One that does nothing of this is as in stock.
    assert validate(COMMENT, "--isolation", "bubblewrap") == 0
    assert "tests: no difference" in capsys.readouterr().out


def test_a_candidate_makes_no_links(validate, tmp_path, capsys):
    """A copy of what one leads to would be a file that the candidate can read."""
    (tmp_path / "my.link").write_text(
        "diff --git a/madeup/unused.py b/madeup/unused.py\ndeleted file mode 100644\n--- a/madeup/unused.py\n"
        "+++ /dev/null\n@@ -1 +0,0 @@\n-unused = True\n"
        "diff --git a/madeup/unused.py b/madeup/unused.py\nnew file mode 120000\n--- /dev/null\n"
        "+++ b/madeup/unused.py\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
    )
    assert validate(tmp_path / "my.link") == 2
    assert "the candidate makes madeup/unused.py a symbolic link" in capsys.readouterr().err


def test_the_files_of_a_diff_are_compiled(validate, tmp_path, monkeypatch):
    """As the rest is, which an installer has compiled: a sandbox has nowhere to put it."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert validate(COMMENT, "--suite", "none", "--isolation", "none") == 0
    (candidate,) = (tmp_path / "cache" / "environments").glob("*/candidate-*[0-9a-f]")
    assert list(candidate.glob("lib/python*/site-packages/madeup/__pycache__/counting.*.pyc"))


MORE = "\n    def test_more(self):\n        self.assertEqual(counting.total([1]), 2)\n"
COMMENT = changed("madeup/counting.py", "# As it is.", "# As it was.")


@pytest.mark.parametrize(
    ("after", "status", "said", "summary"),
    [
        (
            changed("madeup/counting.py", "sum(numbers)", "sum(numbers"),
            1,
            f"collecting ({TESTS}): missing -> error",
            "",
        ),
        (changed("madeup/counting.py", "[-1]", "[0]"), 0, "Nothing newly fails", "| newly passes |"),
        (COMMENT, 0, "No difference from stock", ""),
        ({**COMMENT, TESTS: SOURCE[TESTS] + MORE}, 1, "checks.counting_test.Counting.test_more: missing -> fail", ""),
        ({**COMMENT, TESTS: SOURCE[TESTS].replace("test_of_nothing", "_of_nothing")}, 0, "newly", "| changed |"),
    ],
    ids=["no syntax", "put right", "a comment", "brings a test", "has a test less, which is for a reviewer to judge"],
)
def test_the_verdict_on(validate, tmp_path, capsys, after, status, said, summary):
    assert validate(after) == status
    assert said in capsys.readouterr().out
    text = (results(tmp_path) / "summary.md").read_text()
    assert summary in text
    assert ("Tests whose outcome differs" in text) == (after is not COMMENT)


def test_the_release_itself(validate, tmp_path, capsys, installer):
    """It is a copy of what was installed once."""
    assert validate("stock", "--isolation", "none") == 0
    said_everywhere(tmp_path, capsys, "isolation: none, so the candidate's code ran as this user (")
    summary = (results(tmp_path) / "summary.md").read_text()
    assert "stock against madeup 1.0" in summary and "No difference from stock" in summary
    raw = json.loads((results(tmp_path) / "raw.json").read_text())
    assert (raw["isolation"]["used"], raw["isolation"]["reason"]) == ("none", "--isolation none was asked for")
    assert (raw["candidate"]["kind"], raw["variants"][1]["changed"]) == ("stock", [])
    ran = raw["suites"][0]
    assert ran["differences"] == [] and len(ran["run"]["tests"]) == 3
    assert len(installer.installed) == 1


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (changed("NEWS", "1.0", "2.0"), "changes nothing of madeup 1.0 that is used"),
        (changed("checks/counting_test.py", " 6,", " 7,"), "no suite for madeup imports the changed code"),
        (changed("madeup/unused.py", "True", "False"), "changes nothing that is used"),
    ],
)
def test_a_diff_of_unused_files(validate, capsys, after, said):
    assert validate(after) == 2
    assert said in capsys.readouterr().err


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path / "repository", **SOURCE)
    made("tag", "1.0")
    # The release does not have this, and the candidate does not either: it is the branch's.
    made.commit({"madeup/unused.py": "unused = 1\n"})
    made("checkout", "-q", "-b", "topic")
    return made


def test_a_ref_of_a_clone(validate, repository, tmp_path, capsys):
    commit = repository.commit(changed("madeup/counting.py", "return sum(numbers)", "return sum(numbers[:-1])"))
    assert validate(repository) == 1
    said = capsys.readouterr().out
    assert f"the candidate is topic of {repository.path} (since main, " in said
    assert f"topic@{commit[:12]} against madeup 1.0: FAILED" in said
    directory = results(tmp_path)
    assert directory.name.startswith(f"validate-madeup-topic_{commit[:12]}-")
    assert "+    return sum(numbers[:-1])" in (directory / "report.html").read_text()
    raw = json.loads((directory / "raw.json").read_text())
    assert raw["candidate"]["change"]["commit"] == commit
    assert raw["variants"][1]["changed"] == ["madeup/counting.py"]


def test_links_among_its_tests_lead_nowhere(validate, repository, tmp_path, capsys):
    """Not to the files of the release that are beside the tests, and in a sandbox not to this machine's."""
    read = """
            def test_link(self):
                links = [each for each in pathlib.Path(__file__).parent.iterdir() if each.is_symlink()]
                self.assertTrue(links)
                for each in links:
                    self.assertRaises(FileNotFoundError, each.read_text)
    """
    link = repository.path / "checks" / "link"
    link.symlink_to("../NEWS")
    repository.commit({**COMMENT, TESTS: SOURCE[TESTS] + textwrap.dedent(read).replace("\n", "\n    ")})
    assert validate(repository, "--isolation", "none") == 0
    (tmp_path / "secret").write_text("the password")
    if not sandbox.choose("auto", pythons.find("")).reason:
        link.unlink()
        link.symlink_to(tmp_path / "secret")
        repository.commit({})
        assert validate(repository, "--isolation", "bubblewrap") == 0
    shutil.rmtree(link.parent)
    link.parent.symlink_to(tmp_path)
    repository.commit({})
    assert validate(repository) == 2
    assert "the candidate leaves no directory checks/, which has the tests" in capsys.readouterr().err


def test_an_interruption(validate, monkeypatch, capsys, installer):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "run", interrupted)
        assert validate(COMMENT) == 130
    assert "interrupted" in capsys.readouterr().err
    assert validate(COMMENT) == 0
    # The environments are kept.
    assert len(installer.installed) == 1


def packages_of(variant, **versions):
    """Let the environment have these, as another dependency of the candidate's would have it."""
    marker = variant / "complete.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), **versions}))


def test_how_the_environments_differ_is_said_first(validate, tmp_path, capsys):
    same = "environments: the same Python and packages"
    assert validate(COMMENT) == 0
    said = capsys.readouterr().out
    assert said.index(same) < said.index("candidate: tests")
    summary = (results(tmp_path) / "summary.md").read_text()
    assert summary.index(same) < summary.index("candidate: tests")
    (stock,) = (tmp_path / "cache" / "environments").glob("*/stock")
    (candidate,) = stock.parent.glob("candidate-*[0-9a-f]")
    packages_of(stock, greenlet="3.1", old="1")
    # Its own version is what a candidate may change.
    packages_of(candidate, greenlet="3.2", madeup="2.0")
    assert validate(COMMENT) == 0
    said = capsys.readouterr().out
    assert "candidate: other packages than stock: greenlet: 3.1 -> 3.2, old: 1 -> (none)\n" in said and same not in said


def test_impossible_arguments(validate, capsys, monkeypatch):
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *rest: None if name == "bwrap" else which(name, *rest))
    for options, said in (
        (["--suite", "nonsense"], "madeup has madeup"),
        (["--python", "3.99"], "no such Python"),
        (["--isolation", "bubblewrap"], "--isolation bubblewrap: bwrap is not installed"),
    ):
        assert validate(COMMENT, *options) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        validate(COMMENT, "--isolation", "nonsense")
    assert "'nonsense' (choose from" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        validate(COMMENT, "--git", ".", "HEAD")
    assert "not allowed with argument --candidate" in capsys.readouterr().err
    assert command.main(["madeup", "--no-fastio"]) == 2
    assert "nothing to compare" in capsys.readouterr().err
    assert command.main(["nonsense"]) == 2
    assert "is not one of eventlet" in capsys.readouterr().err
