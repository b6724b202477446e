"""The results that are kept are small, and a figure in a sentence is one of them."""

import re
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="results need the extra 'bench'")
pytest.importorskip("scipy", reason="results need the extra 'bench'")
pytest.importorskip("docutils", reason="the role needs the extra 'docs'")

from docutils.core import publish_doctree
from docutils.parsers.rst import roles
from docutils.utils import SystemMessage

from benchmarks import quoted
from benchmarks.harness import keep
from benchmarks.harness.results import ResultError

ROOT = Path(__file__).parent.parent
#: Files that are kept, and bytes of all of them.
FILES, MOST = 14, 500_000

#: Figures of README.rst, which has no roles, in its order.
README = {
    "1.62": "low glance_shipped* | glance-33-shipped-upload | fastio",
    "1.14": "low glance_shipped* | glance-33-shipped-download | fastio-slow-clients",
    "1.16": "low glance* | glance-32-download | fastio",
    "3.78": "low sheepdog* | cat | eventlet-fastio",
    "9": "less concurrency_glance32 | glance-32-100 | fastio",
    "10": "less network_10gbit | Limits of * | glance-32-10Gbit, tls-fastio-8w | x stock*",
}


def test_figures_of_the_readme() -> None:
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    gains, rest = text.split("\nLinux, ")
    losses = rest.split("\nLosses and changes\n")[1].split("\nTry it\n")[0]
    figures = gains.partition("\n`Lower ")[0] + losses
    found = re.findall(r"(?<![\w.])(\d+\.\d+|\d+(?= %))", figures)
    assert set(found) - {"0.3", "0.4"} == set(README)
    for quoted_, reference in README.items():
        assert quoted.figure(reference).removesuffix(" %") == quoted_, reference


def test_results_are_few_and_small() -> None:
    kept = [path for path in keep.KEPT.rglob("*") if path.is_file()]
    assert len(kept) <= FILES and sum(path.stat().st_size for path in kept) <= MOST
    assert {path.suffix for path in kept} == {".json"}


def test_no_row_is_better_than_what_is_called_a_limit() -> None:
    # Rows that do not compute the hash that is the limit of the others.
    unhashed = re.compile("reference|unverified|curl")
    for name, run in keep.runs().items():
        for case in run.cases:
            figures = {title: case.median(title) for title in case.variants if case.rounds(title)}
            limited = [value for title, value in figures.items() if value is not None and not unhashed.search(title)]
            for limit in (value for title, value in figures.items() if title.startswith("limit")):
                assert limit == (max if case.more_is_better else min)(limited), (name, case.name)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("none | fairness | fastio | ms", "of a run that is kept"),
        ("fairness | 1-transfers", "not RUN"),
        ("fairness | 1-transfers | eventlet-fastio | kg", "0 figures"),
        ("fairness | *-transfers | eventlet-fastio | ms", "3 figures"),
    ],
)
def test_a_reference_that_names_no_figure_fails_the_build(reference: str, message: str) -> None:
    with pytest.raises(ResultError, match=message):
        quoted.figure(reference)
    roles.register_local_role("fig", quoted.role)
    with pytest.raises(SystemMessage, match=message):
        publish_doctree(f"It is :fig:`{reference}`.", settings_overrides={"halt_level": 2, "report_level": 5})


def test_figures_are_those_of_the_tables() -> None:
    case, row = "fairness | 1-transfers | eventlet-", "fairness | *-transfers | eventlet-stock | ms"
    stock, fastio = (float(quoted.figure(f"{case}{each} | ms")) for each in ("stock", "fastio"))
    assert quoted.figure(f"{case}stock | ms : {case}fastio | ms") == f"{stock / fastio:.3g}"
    assert quoted.figure(f"{case}stock | ms : 2") == f"{stock / 2:.3g}"
    assert float(quoted.figure(f"min {row}")) < float(quoted.figure(f"max {row}"))
    assert quoted.figure("fairness | 64-transfers | eventlet-stock | worst_ms") == "3,146"
    assert quoted.figure("dated sheepdog | cat | eventlet-fastio") == "3.92 (3.78–4.14), 2026-11-21"
    assert quoted.figure("cell sheepdog | cat | eventlet-fastio") == "3.92 (3.78–4.14)"
    assert quoted.figure("change deployments | kolla-ansible-4 | p99_ms") == "3,276 → 28.5"
    assert quoted.figure("low sheepdog | cat | eventlet-fastio") == "3.78"
    assert quoted.figure("cell sheepdog | cat | native-fastio : native-stock") == "2.38 (2.12–2.6)"
    assert quoted.figure("percent peers | output | gevent") == "62 %"
    assert quoted.figure("less peers | output | gevent") == "38 %"
    roles.register_local_role("fig", quoted.role)
    assert publish_doctree(f"It is :fig:`{case}stock | ms`.").astext() == f"It is {stock:g}."
