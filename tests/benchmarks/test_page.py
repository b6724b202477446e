"""Pages: what is in them, whatever text they are given, and that nothing else is needed to read them."""

import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.harness import page
from benchmarks.harness.page import Code, Download, Folded, Notes, PageError, Part, Plot, Section, Text, Toned
from fastio.tables import Table

SVG = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg" width="720pt" height="72pt"
 viewBox="0 0 720 72">
 <metadata><x href="http://example.org/"/></metadata>
 <defs><style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>
  <clipPath id="clip"><path d="M 0 0"/></clipPath></defs>
 <g id="figure_1" clip-path="url(#clip)"><path style="fill: #FFFFFF; stroke: black" d="M 0 0 L 1 1"/>
 <path style="fill: #2a7f62; clip-path: url(#clip)" d="M 0 0"/><use xlink:href="#clip" fill="#000"/>
 <text x="1" y="2"><title>of a part</title>4 &lt; 5</text></g>
 <title>of the whole</title>
</svg>
"""
VOID = {"meta", "link", "br"}


class Read(HTMLParser):
    """A page as a parser sees it; fails if an element is not closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, attribute: str) -> list[str]:
        return [attributes[attribute] or "" for _, attributes in self.elements if attribute in attributes]

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def sections() -> list[Section]:
    plot = Plot("Waits", SVG, ["the longest is at second 2"])
    return [
        Section("Waits", [plot, Table("Longest", ["", "ms"], [["PooledLock", "31"], ["noise", "–"]], ["of one run"])]),
        Section("Waits", [Section("Inner", [plot, Section("Deep", [Code("a\nb")])]), Section("Other")]),
        Section("Rest", [
            Folded("More", [Table("Longest", ["", "b"], [["x", "y"]]), Text("fine", "good")]), Notes(["one"]),
            Download("Raw data", "raw.json", b"{}"), Table("Empty", ["a"], []),
        ]),
    ]  # fmt: skip


def test_ids_and_what_refers_to_them():
    made = Read(page.html("A title", sections(), lead=[Text("First.")]))
    ids = Counter(made.all("id"))
    assert [name for name, count in ids.items() if count > 1] == []
    referred = [each.removeprefix("#") for each in made.all("href") if each.startswith("#")]
    for attribute in ("aria-labelledby", "aria-describedby"):
        referred += made.all(attribute)
    for attribute in ("style", "clip-path"):
        referred += [found for each in made.all(attribute) for found in re.findall(r"url\(#([^)]*)\)", each)]
    assert len(referred) > 15
    assert set(referred) <= set(ids)
    assert [len(each) for each in (made.tags("h1"), made.tags("h2"), made.tags("h3"), made.tags("h4"))] == [1, 4, 2, 1]


def test_nothing_else_is_needed():
    text = page.html("A title", sections())
    made = Read(text)
    assert {tag for tag, _ in made.elements} & {"script", "iframe", "object", "embed", "img", "metadata"} == set()
    outside = [each for each in [*made.all("href"), *made.all("src")] if not each.startswith(("#", "data:"))]
    assert outside == []
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text


def test_the_table_of_contents():
    made = page.html("A title", sections())
    contents = made[made.index("<nav") : made.index("</nav>")]
    assert re.findall(r'href="#([^"]*)"', contents) == ["waits", "waits-2", "inner", "other", "rest"]
    assert "deep" not in contents
    assert "<nav" not in page.html("A title", sections()[:1])


def test_pictures():
    made = Read(page.html("A title", sections()))
    first, second = made.tags("svg")
    assert (first["role"], first["viewbox"]) == ("img", "0 0 720 72")
    assert first["aria-labelledby"] != second["aria-labelledby"]
    assert "max-width: 960px" in (first["style"] or "")
    # What is black or white on paper is so in light and dark.
    styles = [each["style"] for each in made.tags("path") if "style" in each]
    assert styles[0] == "fill: var(--paper); stroke: currentColor"
    assert styles[1] == "fill: #2a7f62; clip-path: url(#p1-clip)"
    assert {each["fill"] for each in made.tags("use")} == {"currentColor"}
    assert [each["href"] for each in made.tags("use")] == ["#p1-clip", "#p2-clip"]
    assert "4 < 5" in made.texts
    assert "the longest is at second 2" in made.texts
    # The page names the picture; a browser shows the other one beside the pointer.
    assert "of a part" in made.texts and "of the whole" not in made.texts


@pytest.mark.parametrize(
    ("svg", "said"),
    [
        ("<svg", "no SVG"),
        ("<html/>", "its root is 'html'"),
        ("<svg width='10%' height='5'/>", "neither a viewBox nor"),
        ("<svg viewBox='0 0 x 1'/>", "four numbers"),
        ("<svg viewBox='0 0 1 1'><script/></svg>", "<script>"),
        ("<svg viewBox='0 0 1 1'><foreignObject/></svg>", "<foreignObject>"),
        ("<svg viewBox='0 0 1 1'><g onclick='x()'/></svg>", "onclick"),
        ("<svg viewBox='0 0 1 1'><style>td {}</style></svg>", "style sheet"),
        ("<svg viewBox='0 0 1 1'><image href='http://example.org/a.png'/></svg>", "http://example.org/a.png"),
        ("<svg viewBox='0 0 1 1'><g style='fill: url(a.svg#b)'/></svg>", "a.svg#b"),
    ],
)
def test_pictures_that_no_page_can_have(svg, said):
    with pytest.raises(PageError, match=re.escape(said)) as raised:
        page.html("A title", [Section("One", [Plot("Waits", svg, [])])])
    assert "'Waits'" in str(raised.value)


def test_tables():
    head = ["", "what", "ms", "met"]
    rows = [["a", "x", "1.5", "yes"], ["b" * 40, "y", "–", "no"], ["", "1", "≥ 3", "slower"]]
    tables = [Table("Times", head, rows), Toned("Told", head, rows, tones=["good", "", ""])]
    made = Read(page.html("T", [Section("S", tables)]))
    assert [each.get("class") for each in made.tags("th") if each["scope"] == "col"] == [None, "figure", None] * 2
    assert [each.get("class") for each in made.tags("tr")] == [None, None, None, "bad", None, "good", None, None]
    assert len(made.tags("caption")) == 2
    # It is wider than a telephone: the keyboard has to reach it.
    assert [each.get("tabindex") for each in made.tags("div")] == ["0", "0"]
    narrow = Read(page.html("T", [Section("S", [Table("Times", ["", "ms"], [["a", "1"]])])]))
    assert [each.get("tabindex") for each in narrow.tags("div")] == [None]


def test_tones_are_known():
    for part in (Text("x", "green"), Toned("T", ["a"], [["b"]], tones=["green"])):
        with pytest.raises(PageError, match="'green': allowed are '', 'good', 'bad', 'noise'"):
            page.html("T", [Section("S", [part])])


@example("<script>a</script>", "</td></table><b>\"'&amp;", "</li><i x=1>")
@given(st.text(min_size=1, max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_text(one, two, three):
    parts: list[Part] = [
        Text(one), Notes([two]), Code(three), Folded(two, [Text(three)]),
        Table(one, [two, three], [[three, one]], [two]), Plot(two, SVG, [one]), Download(one, two, b""),
    ]  # fmt: skip
    made = Read(page.html(one, [Section(two, parts), Section(three, parts)]))
    assert made.texts.count(one) or not one.strip() or "\r" in one or "\0" in one
    assert {tag for tag, _ in made.elements} & {"script", "b", "i"} == set()
    assert [name for name, count in Counter(made.all("id")).items() if count > 1] == []
    page.markdown(one, [Section(two, parts)])


def test_markdown():
    made = page.markdown("A <title>", sections(), lead=[Text("First.")])
    assert made.startswith("# A &lt;title>\n\nFirst.\n\n## Waits\n\n**Longest**\n\n|  | ms |\n| --- | ---: |\n")
    assert "| noise | – |\n\n- of one run\n" in made
    assert "### Inner\n\n#### Deep\n\n```\na\nb\n```\n" in made
    assert "svg" not in made
    assert "Empty" not in made
    assert page.markdown("T", [Section("S", [Code("```")])]).endswith("````\n```\n````\n")


def test_what_is_written_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        page.write(path, "new \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]
    before = os.umask(0o027)
    try:
        page.write(path, "new")
    finally:
        os.umask(before)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileNotFoundError):
        page.write(Path(tmp_path, "missing", "report.html"), "new")
