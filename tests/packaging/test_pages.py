"""The pages in a real browser, as wide as on a laptop and on a telephone."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MONKEY_PATCHED
from tests.eventually import until

HTML = Path(__file__).parents[2] / "doc" / "build" / "html"
WIDTHS = (1280, 400)

#: Opens each page in a frame, once for each width, and sends what does not fit into it.
DRIVER = """\
<!DOCTYPE html><meta charset="utf-8"><iframe style="border: 0; height: 800px"></iframe>
<script type="module">
const [frame] = document.getElementsByTagName("iframe");
const scrolls = each => /auto|scroll/.test(frame.contentWindow.getComputedStyle(each).overflowX);
const held = each => each && (scrolls(each) || held(each.parentElement));
const found = [];
for (const page of PAGES) {
  await new Promise(done => { frame.onload = done; frame.src = page; });
  const content = frame.contentDocument, root = content.documentElement;
  for (const width of WIDTHS) {
    frame.style.width = width + "px";
    const say = (what, each) => found.push(`${page} at ${width}: ${what}: ${each.outerHTML.slice(0, 200)}`);
    const wide = each => each.getBoundingClientRect().right > root.clientWidth + 1;
    if (root.scrollWidth > root.clientWidth) say(`is ${root.scrollWidth} wide`, content.body);
    for (const each of content.querySelectorAll("article *"))
      if (each.getClientRects().length && wide(each) && !held(each)) say("does not fit", each);
    for (const each of content.querySelectorAll("td"))
      if (each.innerText.length > 60 && each.clientWidth < 120) say("is narrow", each);
  }
}
await fetch("/found", {method: "POST", body: JSON.stringify(found)});
</script>
"""


class Handler(SimpleHTTPRequestHandler):
    found: list[Any]

    def do_GET(self) -> None:
        if self.path != "/driver":
            super().do_GET()
            return
        pages = sorted(str(path.relative_to(HTML)) for path in HTML.rglob("*.html") if "_modules" not in path.parts)
        content = DRIVER.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.found.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def served() -> Iterator[tuple[str, list[Any]]]:
    """The address of the driver, and where its results come."""
    found: list[Any] = []
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(type("", (Handler,), {"found": found}), directory=HTML)
    ) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/driver", found
        server.shutdown()


@pytest.mark.skipif(MONKEY_PATCHED, reason="the browser is a separate process")
@pytest.mark.limit(400)
def test_each_page_fits(served: tuple[str, list[Any]], tmp_path: Path) -> None:
    """No page scrolls sideways: tables and code do, and no cell with a sentence is a narrow column."""
    if not HTML.exists():
        pytest.skip("the pages are not built (tox -e docs)")
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("there is no browser (apt-get install chromium)")
    address, found = served
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", f"--user-data-dir={tmp_path}")
    log = tmp_path / "browser.log"
    with open(log, "wb") as said, subprocess.Popen([browser, *options, address], stdout=said, stderr=said) as running:
        try:
            until(lambda: found or running.poll() is not None, "the browser", 300)
        finally:
            running.terminate()
    assert found, log.read_text(errors="replace")
    assert found[0] == [], "\n".join(found[0])
