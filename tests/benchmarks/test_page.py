"""Pages: what is in them, whatever text they are given, and that nothing else is needed to read them."""

import base64
import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.harness import page
from benchmarks.harness.page import Code, Folded, Notes, Part, Plot, Section, Text
from fastio.tables import Table

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 72"><text>4 &lt; 5</text></svg>'
VOID = {"meta", "link", "br", "img"}


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
            Table("Empty", ["a"], []),
        ]),
    ]  # fmt: skip


def test_ids_and_what_refers_to_them():
    made = Read(page.html("A title", sections(), lead=[Text("First.")]))
    ids = Counter(made.all("id"))
    assert [name for name, count in ids.items() if count > 1] == []
    referred = [each.removeprefix("#") for each in made.all("href") if each.startswith("#")]
    for attribute in ("aria-labelledby", "aria-describedby"):
        referred += made.all(attribute)
    assert len(referred) > 15
    assert set(referred) <= set(ids)
    assert [len(each) for each in (made.tags("h1"), made.tags("h2"), made.tags("h3"), made.tags("h4"))] == [1, 4, 2, 1]


def test_nothing_else_is_needed():
    text = page.html("A title", sections())
    made = Read(text)
    assert {tag for tag, _ in made.elements} & {"script", "iframe", "object", "embed"} == set()
    outside = [each for each in [*made.all("href"), *made.all("src")] if not each.startswith(("#", "data:"))]
    assert outside == []
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text


def test_the_table_of_contents():
    made = page.html("A title", sections())
    contents = made[made.index("<nav") : made.index("</nav>")]
    assert re.findall(r'href="#([^"]*)"', contents) == ["waits", "waits-2", "rest"]
    assert "<nav" not in page.html("A title", sections()[:1])


def test_pictures():
    made = Read(page.html("A title", sections()))
    first, second = made.tags("img")
    assert first["alt"] == second["alt"] == "Waits" and first["aria-describedby"] != second["aria-describedby"]
    kind, _, data = (first["src"] or "").partition(",")
    assert kind == "data:image/svg+xml;base64" and base64.b64decode(data).decode() == SVG
    assert "the longest is at second 2" in made.texts


def test_a_page_marks_figures_and_verdicts():
    head = ["", "what", "ms", "verdict"]
    rows = [["a", "x", "1.5", "faster"], ["b" * 40, "y", "–", "–"], ["", "1", "≥ 3", "slower"]]
    met = Table("Goals", ["", "met"], [["a", "yes"], ["failed", "no"], ["c", "–"]])
    made = Read(page.html("T", [Section("S", [Table("Times", head, rows), met])]))
    assert [each.get("class") for each in made.tags("th") if each["scope"] == "col"] == [None, "figure", None, None]
    rows_of_both = [each.get("class") for each in made.tags("tr")]
    assert rows_of_both == [None, "good", None, "bad", None, "good", "bad", None]
    assert len(made.tags("caption")) == 2
    # Either may be wider than the window: the keyboard has to reach it.
    assert [each.get("tabindex") for each in made.tags("div")] == ["0", "0"]


@example("<script>a</script>", "</td></table><b>\"'&amp;", "</li><i x=1>")
@given(st.text(min_size=1, max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_text(one, two, three):
    parts: list[Part] = [
        Text(one), Notes([two]), Code(three), Folded(two, [Text(three)]),
        Table(one, [two, three], [[three, one]], [two]), Plot(two, SVG, [one]),
    ]  # fmt: skip
    made = Read(page.html(one, [Section(two, parts), Section(three, parts)]))
    assert made.texts.count(one) or not one.strip() or "\r" in one or "\0" in one
    assert {tag for tag, _ in made.elements} & {"script", "b", "i"} == set()
    assert [name for name, count in Counter(made.all("id")).items() if count > 1] == []


def test_a_written_page_is_whole(tmp_path, monkeypatch):
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
    link = tmp_path / "link.html"
    link.symlink_to(path)
    page.write(link, "newer")
    assert (path.read_text(), link.read_text(), link.is_symlink()) == ("new", "newer", False)


@pytest.mark.parametrize("through_a_link", [False, True])
def test_nothing_but_a_file_is_replaced(tmp_path, through_a_link):
    path = special = tmp_path / "special"
    os.mkfifo(special)
    if through_a_link:
        path = tmp_path / "link"
        path.symlink_to(special)
    with pytest.raises(FileExistsError, match="not a regular file"):
        page.write(path, "new")
    assert special.is_fifo() and path.is_symlink() == through_a_link
