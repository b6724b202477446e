"""Reports in a real browser: seen in light and dark, on a telephone, by keyboard, on paper."""

import os
import re

import pytest

pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")

from benchmarks.report import __main__ as command
from fastio import page
from fastio.page import Code, Folded, Notes, Plot, Section, Table, Text
from tests.benchmarks import browser
from tests.benchmarks.browser import NARROW, WIDE, Browser
from tests.benchmarks.test_report import KEPT, sample
from tests.test_page import SVG

#: BROWSER_REQUIRED=1: where there has to be one, none is a failure.
missing = browser.missing()
pytestmark = pytest.mark.skipif(bool(missing) and not os.environ.get("BROWSER_REQUIRED"), reason=missing or "-")

#: Text smaller than what is read with ease has to have this contrast: WCAG 2.2, success criterion 1.4.3.
CONTRAST = 4.5

#: Each text of the page with its contrast to what is behind it; text that is not shown is left out.
CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function colour(text) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
function luminance(rgb) {
  const [r, g, b] = rgb.map(each => (each /= 255) <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(element) {
  for (let each = element; each; each = each.parentElement) {
    const found = colour(getComputedStyle(each).backgroundColor);
    if (found[3] === 1) return found;
    if (found[3] !== 0) throw new Error("half transparent: " + each.outerHTML.slice(0, 80));
  }
  throw new Error("no background behind " + element.outerHTML.slice(0, 80));
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
  if (!text || !element.getClientRects().length || element.closest("title, style")) continue;
  const style = getComputedStyle(element);
  const own = colour(element.ownerSVGElement ? style.fill : style.color).slice(0, 3);
  const [light, dark] = [luminance(own), luminance(behind(element).slice(0, 3))].sort((a, b) => b - a);
  found.push([(light + 0.05) / (dark + 0.05), text.slice(0, 40), element.tagName]);
}
return found;
"""

#: Elements that stick out of the page to the right, unless they are in one that scrolls.
OUTSIDE = """
return [...document.querySelectorAll("body *")].filter(each =>
  each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll, pre, .skip")
).map(each => each.outerHTML.slice(0, 120));
"""

#: Regions that scroll sideways, but have no focus with which the keyboard scrolls them.
UNREACHED = """
return [...document.querySelectorAll(".scroll, pre")].filter(each =>
  each.scrollWidth > each.clientWidth + 1 && each.tabIndex < 0
).map(each => each.outerHTML.slice(0, 120));
"""

FOCUS = "const e = document.activeElement; return [e.tagName, e.id, e.className, e.getAttribute('href')]"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if missing:
        pytest.fail(missing)
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of results of many kinds, one of them with all that can go wrong."""
    directory = tmp_path_factory.mktemp("report")
    sample().write(directory / "sample.json")
    kept = [KEPT / f"{name}.json" for name in ("glance", "glance_client", "stores_rbd", "fairness")]
    kept += [directory / "sample.json", KEPT / "candidates" / "eventlet-communicate.json"]
    assert command.main([*map(str, kept), "-o", str(directory / "report.html")]) == 0
    return directory / "report.html"


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Every part that a page can have, in every tone, with texts that do not break."""
    long = "x" * 300
    rows = [["FAILED", "1"], ["faster", "2"], ["noise", "3"], [long, "4"], ["wide", long]]
    sections = [
        Section("Parts", [
            *(Text(f"a text that is {tone or 'plain'}", tone) for tone in page.TONES), Text(long), Notes([long, "b"]),
            Code(long), Table("Rows " + long, ["what", "how many"], rows, [long]), Plot("Plot " + long, SVG, [long]),
            Folded("More " + long, [Code(long), Text("within")]), Section("Below", [Section("Deep", [Text("x")])]),
        ]),
        Section("Second " + long),
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("parts") / "page.html"
    page.write(path, page.html("Parts " + long, sections))
    return path


@pytest.fixture(params=["report", "parts"])
def shown(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(chromium, shown, scheme):
    chromium.open(shown, scheme=scheme)
    chromium.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = chromium.run(CONTRASTS)
    assert len(found) > 20
    assert [each for each in found if each[0] < CONTRAST] == []
    dark = chromium.run("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    assert chromium.messages() == []


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_nothing_sticks_out(chromium, shown, width):
    chromium.open(shown, width)
    chromium.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert chromium.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert chromium.run(OUTSIDE) == []
    assert chromium.run(UNREACHED) == []
    assert chromium.messages() == []


def test_the_keyboard_reaches_everything(chromium, report):
    chromium.open(report)
    chromium.press_tab()
    assert chromium.run(FOCUS)[2:] == ["skip", "#content"]
    assert chromium.run("return document.activeElement.getBoundingClientRect().left >= 0")
    expected = chromium.run(
        "return document.querySelectorAll('a, summary, [tabindex=\"0\"]').length"
        " - document.querySelectorAll('details:not([open]) > :not(summary) :is(a, summary, [tabindex=\"0\"])').length"
        " - document.querySelectorAll('details:not([open]) > pre').length"
    )
    reached = [chromium.run(FOCUS)]
    order = []
    for _ in range(expected - 1):
        chromium.press_tab()
        reached.append(chromium.run(FOCUS))
        order.append(chromium.run("return document.activeElement.closest('nav') ? 'nav' : 'main'"))
        outline = chromium.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", f"{reached[-1]} is not seen to have the focus"
    chromium.press_tab()
    assert chromium.run(FOCUS)[0] == "BODY", "there is more to reach than was thought"
    # First the contents, all of them, then the page from above to below.
    assert order == sorted(order, reverse=True)
    assert order.count("nav") == chromium.run("return document.querySelectorAll('nav a').length")
    kinds = {each[0] for each in reached}
    assert kinds == {"A", "DIV", "PRE", "SUMMARY"}


def test_the_keyboard_skips_and_scrolls(chromium, report):
    chromium.open(report, NARROW)
    chromium.press_tab()
    chromium.press_enter()
    assert chromium.run(FOCUS)[:2] == ["MAIN", "content"]
    chromium.press_tab()
    assert chromium.run(FOCUS)[0] == "DIV"
    named = "return document.getElementById(document.activeElement.getAttribute('aria-labelledby')).textContent"
    assert chromium.run(named) == "All results of this page"


def test_what_a_screen_reader_is_told(chromium, shown):
    chromium.open(shown)
    pictures = chromium.run("""
        return [...document.querySelectorAll("svg")].map(each => [
          each.getAttribute("role"), document.getElementById(each.getAttribute("aria-labelledby")).textContent,
          document.getElementById(each.getAttribute("aria-describedby")).textContent])
    """)
    assert pictures
    assert {role for role, *_ in pictures} == {"img"}
    assert all(name and text for _, name, text in pictures)
    assert len({name for _, name, _ in pictures}) == len(pictures)
    # The browser's own idea of it.
    tree = chromium.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles: dict[str, list[str]] = {}
    for node in tree:
        if not node.get("ignored"):
            roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert len(roles.get("image", roles.get("img", []))) == len(pictures)
    for role in ("image", "img", "table", "region", "heading", "link", "navigation", "DisclosureTriangle"):
        assert all(roles.get(role, ["-"])), role
    assert len(roles["main"]) == len(roles["navigation"]) == 1
    assert roles["table"]
    assert set(roles["rowheader"]) and set(roles["columnheader"])
    # No level of heading is left out.
    levels = chromium.run("return [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(each => +each.tagName[1])")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


@pytest.mark.parametrize("landscape", [False, True])
def test_paper(chromium, shown, landscape):
    chromium.open(shown, scheme="dark")
    pdf = chromium.pdf(landscape)
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 1
    # As it is laid out for paper: white, all of it unfolded, and nothing sticks out.
    chromium.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}],
    })  # fmt: skip
    width = 1017 if landscape else 687
    chromium.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        assert chromium.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
        found = chromium.run("""
            return [...document.querySelectorAll("main *")].filter(each => !each.ownerSVGElement &&
              each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 120))
        """)
        assert found == []
        folded = chromium.run("""
            return [...document.querySelectorAll("details > :not(summary)")].filter(each => !each.closest("figure") &&
              !each.checkVisibility({contentVisibilityAuto: true})).length
        """)
        assert folded == 0
        assert min(each[0] for each in chromium.run(CONTRASTS)) >= CONTRAST
    finally:
        chromium.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
