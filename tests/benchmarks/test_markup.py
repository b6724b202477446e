"""Tables as markdown and as reStructuredText."""

import re

import pytest

from benchmarks.harness.markup import markdown, rst
from fastio.tables import Table


def test_markdown() -> None:
    rows = [["a|b", "[by peer]", "1.5"], ["c\nd", "", "–"]]
    assert markdown(Table("Times <of> one run", ["", "what", "ms"], rows, ["p < 1"])) == (
        "**Times &lt;of> one run**\n\n"
        "|  | what | ms |\n| --- | --- | ---: |\n| a\\|b | [by peer] | 1.5 |\n| c d |  | – |\n\n"
        "- p &lt; 1"
    )
    assert markdown(Table("", ["a"], [])) == "| a |\n| --- |"


def test_a_table_becomes_rst_that_docutils_reads() -> None:
    docutils = pytest.importorskip("docutils.core", reason="only checked where docutils is installed")
    text = rst(Table("Times", ["", "ms"], [["a", "1"], ["b", ""]], ["noisy"]))
    assert text.startswith(".. list-table:: Times\n   :header-rows: 1\n\n   * -\n     - ms\n   * - a\n     - 1\n")
    html = docutils.publish_string(text, writer="html", settings_overrides={"halt_level": 2}).decode()
    assert len(re.findall("<tr", html)) == 3
    assert html.index("</table>") < html.index("noisy")
