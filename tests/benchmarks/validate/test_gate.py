"""The examples of doc/source/upstream/gate.rst: their commands are accepted."""

import re
import shlex
from pathlib import Path

import pytest

from benchmarks.validate import __main__ as command
from benchmarks.validate import projects
from tests.benchmarks.validate.test_flow import WRITTEN

yaml = pytest.importorskip("yaml", reason="PyYAML reads the examples")

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "doc" / "source" / "examples"
PAGE = ROOT / "doc" / "source" / "upstream" / "gate.rst"
ZUUL, PLAYBOOK = EXAMPLES / "zuul" / "zuul.yaml", EXAMPLES / "zuul" / "playbooks" / "fastio-validate.yaml"
GITHUB = EXAMPLES / "github" / "fastio-validate.yml"


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def zuul_job():
    (job,) = [each["job"] for each in read(ZUUL) if "job" in each]
    return job


def zuul_tasks():
    """The tasks, with the variables that the job and the play set in the place of their names."""
    (play,) = read(PLAYBOOK)
    (fastio,) = zuul_job()["required-projects"]
    values = {
        "ansible_user_dir": "/home/zuul", "zuul.project.src_dir": "src/opendev.org/openstack/glance_store",
        f"zuul.projects['{fastio}'].src_dir": f"src/{fastio}", **zuul_job()["vars"],
    }  # fmt: skip

    def filled(value):
        if isinstance(value, dict):
            return {key: filled(each) for key, each in value.items()}
        return re.sub(r"{{ (.+?) }}", lambda found: values[found[1]], value)

    for name, value in play["vars"].items():
        values[name] = filled(value)
    return [filled(task) for task in play["tasks"]]


def zuul_command():
    (found,) = [task["ansible.builtin.command"] for task in zuul_tasks() if "ansible.builtin.command" in task]
    return found


def github_steps():
    (job,) = read(GITHUB)["jobs"].values()
    return job["steps"]


def github_command():
    (found,) = [step["run"] for step in github_steps() if "validate --" in step.get("run", "")]
    return found.replace("${{ github.workspace }}", "/home/runner/work/eventlet/eventlet")


def other_command():
    (found,) = re.findall(r"^    (tox -e validate .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return found


def parsed(text):
    """The options of the command, which begins with tox and its environment."""
    words = shlex.split(text)
    before, arguments = words[: words.index("--")], words[words.index("--") + 1 :]
    assert before[-2] == "-e" and Path(before[-3]).name == "tox"
    assert f"[testenv:{before[-1]}]" in (ROOT / "tox.ini").read_text(encoding="utf-8")
    return command._parser().parse_args(arguments)


@pytest.mark.parametrize("text", [zuul_command, github_command, other_command])
def test_the_command_is_accepted(text):
    assert "{{" not in text(), "an unset variable"
    options = parsed(text())
    project = projects.find(options.project)
    assert project.choose_suites([]) and options.no_fastio
    # Such clones are those of test_clones.py.
    assert options.git[1] in ("HEAD", "HEAD~1..HEAD")


def test_the_command_reads_the_files_of_the_other_steps():
    options = parsed(zuul_command())
    assert options.git[0] == "/home/zuul/src/opendev.org/openstack/glance_store"
    # Where Zuul looks for what is kept.
    assert str(options.results).startswith("/home/zuul/zuul-output/logs/")
    assert all(task["args"]["chdir"] == "/home/zuul/src/opendev.example.org/fastio" for task in zuul_tasks())
    assert (ZUUL.parent / zuul_job()["run"]) == PLAYBOOK
    options = parsed(github_command())
    workspace = Path("/home/runner/work/eventlet/eventlet")
    clone, fastio = [step["with"] for step in github_steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert Path(options.git[0]) == workspace / clone["path"] and clone["fetch-depth"] == 0
    (judging,) = [step for step in github_steps() if "working-directory" in step]
    assert judging["working-directory"] == fastio["path"]
    assert options.results == workspace / "validate"


def test_the_page_shows_what_there_is():
    """tests/benchmarks/validate/test_flow.py runs a validation and looks for the files that are kept."""
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"validate/\*/([\w.]+)", GITHUB.read_text(encoding="utf-8"))) == WRITTEN
    assert "/*/junit.xml" in page
    shown = re.findall(r"^\.\. literalinclude:: /examples/(\S+)$", page, re.MULTILINE)
    assert [EXAMPLES / each for each in shown] == [ZUUL, PLAYBOOK, GITHUB]
    (project,) = [each["project"] for each in read(ZUUL) if "project" in each]
    assert [list(used) for used in project["check"]["jobs"]] == [[zuul_job()["name"]]]
