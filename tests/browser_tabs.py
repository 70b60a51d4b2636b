"""A browser for tests of pages: Chromium by Playwright, with eyes on all that a page may not do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARTEFACTS = os.environ.get("VIEWFOLD_ARTEFACTS")
"""A folder for pictures of pages, for somebody who wants to look at them."""
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
FLAGS += ("--disable-gpu-compositing",)
"""WebGL without a GPU; the rest of a page is painted without it."""
DRIVER = "GL Driver Message (OpenGL, Performance"
"""What the stand-in for a GPU says, now and then, when the browser shows what it has drawn."""
NO_WEBGL = """
const known = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
  return kind.startsWith("webgl") ? null : known.call(this, kind, ...more);
};
"""


def keep_picture(page: Any, name: str, *, whole: bool = False) -> None:
    if ARTEFACTS:
        page.screenshot(path=Path(ARTEFACTS, f"{name}.png"), full_page=whole)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser that is installed; tests are skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is on the path")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*FLAGS])
        yield browser
        browser.close()


class Tab:
    """A page in a browser. What it says, asks for or opens, and must not, is `wrong`."""

    def __init__(
        self,
        browser: Any,
        file: Path,
        width: int = 1300,
        *,
        scripts: tuple[str, ...] = (),
        **settings: Any,
    ) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.wrong: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"failed: {error}"))
        self.page.on("dialog", self._opened)
        self.page.on("request", self._asked)
        self.address = file.resolve().as_uri()
        for script in scripts:
            self.page.add_init_script(script)
        self.page.goto(self.address)
        self.page.wait_for_selector("footer")
        self.page.wait_for_function("performance.getEntriesByName('viewfold-map').length > 0")

    def _said(self, message: Any) -> None:
        if DRIVER not in message.text:
            self.wrong.append(f"said {message.text}")

    def _opened(self, dialog: Any) -> None:
        self.wrong.append(f"opened {dialog.message}")
        dialog.dismiss()

    def _asked(self, request: Any) -> None:
        if request.url.partition("#")[0] != self.address and not request.url.startswith("data:"):
            self.wrong.append(f"asked for {request.url}")

    def close(self) -> None:
        self.context.close()
        assert not self.wrong

    def see(self, selector: str) -> Any:
        return self.page.locator(selector)

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is, once it is in sight."""
        place = "element => element.scrollIntoView({block: 'center', behavior: 'instant'})"
        self.see(selector).first.evaluate(place)
        found: dict[str, float] = self.see(selector).first.bounding_box()
        return found

    def lasso(self, corners: list[tuple[float, float]], key: str = "") -> None:
        """Draw around samples, in pixels of the map, with a key held down."""
        area = self.box(".map")
        places = [(area["x"] + x, area["y"] + y) for x, y in [*corners, corners[0]]]
        mouse = self.page.mouse
        if key:
            self.page.keyboard.down(key)
        mouse.move(*places[0])
        mouse.down()
        for place in places[1:]:
            mouse.move(*place, steps=3)
        mouse.up()
        if key:
            self.page.keyboard.up(key)

    def lasso_all(self, key: str = "") -> None:
        """Draw around all samples; the corners of the map are round."""
        area = self.box(".map")
        right, low = area["width"] - 12, area["height"] - 12
        self.lasso([(12, 12), (right, 12), (right, low), (12, low)], key)

    def shot(self, name: str, *, whole: bool = False) -> None:
        keep_picture(self.page, name, whole=whole)
