"""A headless Chromium for the tests of pages, driven by selenium (the extra 'browser')."""

import base64
import shutil
from pathlib import Path
from typing import Any

#: What a page is asked in light and dark, on a telephone and on a screen.
NARROW, WIDE = 360, 1280

#: Chromium's own connections, which a test has no use for, are off.
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


def missing() -> str:
    """Why there is no browser here; empty if there is one."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: it comes with the extra 'browser'"
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not found: Debian has them in chromium and chromium-driver" if absent else ""


class Browser:
    """One Chromium; :meth:`close` ends it.

    :param profile: a new directory for what it keeps
    """

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    def close(self) -> None:
        self.driver.quit()

    def open(self, path: Path, width: int = WIDE, scheme: str = "light") -> None:
        """Show a page.

        :param width: of the window, in pixels
        :param scheme: ``light`` or ``dark``, as the system would have it
        """
        self._command(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )  # fmt: skip
        self._command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.driver.get(path.resolve().as_uri())

    def run(self, script: str) -> Any:
        """What a script of the test says of the page. (The page's own policy allows none.)"""
        return self.driver.execute_script(script)

    def messages(self) -> list[str]:
        """What the console has said since it was asked last."""
        return [each["message"] for each in self.driver.get_log("browser")]

    def press_tab(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self._command("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def press_enter(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self._command(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
            )  # fmt: skip

    def pdf(self, landscape: bool = False) -> bytes:
        """The page on paper."""
        return base64.b64decode(self._command("Page.printToPDF", landscape=landscape)["data"])

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._command("Page.captureScreenshot")["data"]))

    def _command(self, name: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, parameters)
