"""The pages of the documentation in a real browser: none is wider than its window, or longer than ten screens."""

import os
from pathlib import Path

import pytest

from tests.benchmarks import browser
from tests.benchmarks.browser import NARROW, WIDE, Browser
from tests.eventually import until

HTML = Path(__file__).parents[2] / "doc" / "build" / "html"
#: Not ``_modules``, which is the source as it is.
PAGES = sorted(path.relative_to(HTML) for path in HTML.rglob("*.html") if "_modules" not in path.parts)
#: About ten screens on a display that is 1,280 wide, in pixels.
LONGEST = 10_000

#: BROWSER_REQUIRED=1: where there has to be a browser, none is a failure.
missing = browser.missing() or ("" if PAGES else "the pages are not built: tox -e docs")
pytestmark = pytest.mark.skipif(bool(missing) and not os.environ.get("BROWSER_REQUIRED"), reason=missing or "-")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if missing:
        pytest.fail(missing)
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_fits(chromium, page, width):
    chromium.open(HTML / page, width)
    wide, high = chromium.run("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert wide <= width
    assert width < WIDE or high <= LONGEST
    chromium.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert chromium.run("return document.documentElement.scrollWidth") <= width


def test_the_search_finds_a_setting_on_a_phone(chromium):
    chromium.open(HTML / "search.html", NARROW)
    chromium.driver.get(f"{(HTML / 'search.html').as_uri()}?q=store_chunk_sizes")
    script = "return [...document.querySelectorAll('#search-results a')].map(each => each.textContent)"
    until(lambda: "Settings" in chromium.run(script))
