"""The map of notebooks in a browser: what is selected there is known to Python, and back."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from browser_tabs import DRIVER, keep_picture
from page_models import named_data
from report_models import few_draws  # noqa: F401

from viewfold.web import PageData, static_text

MODEL = """
async ([code, summary, columns]) => {
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const held = Object.entries(columns).map(([name, text]) => [name, bytes(text)]);
  const traits = { summary, columns: Object.fromEntries(held), selection: [], height: 400 };
  const listeners = {};
  window.model = {
    traits, listeners, saved: 0,
    get: (name) => traits[name],
    set(name, value) {
      traits[name] = value;
      (listeners[`change:${name}`] ?? []).forEach((f) => f());
    },
    save_changes() { this.saved += 1; },
    on(name, f) { (listeners[name] ??= []).push(f); },
    off(name, f) { listeners[name] = (listeners[name] ?? []).filter((one) => one !== f); },
  };
  const { default: widget } = await import(`data:text/javascript;base64,${code}`);
  const el = document.body.appendChild(document.createElement("div"));
  window.end = await widget.render({ model, el });
}
"""


@pytest.fixture(scope="module")
def data() -> PageData:
    return named_data()


@pytest.fixture(scope="module")
def notebook(chromium: Any, data: PageData) -> Iterator[Any]:
    """A page with the widget and a model of it; it must say and open nothing."""
    page = chromium.new_page(viewport={"width": 700, "height": 560})
    page.set_default_timeout(30_000)
    wrong: list[str] = []
    page.on("console", lambda said: DRIVER in said.text or wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    code = base64.b64encode(static_text("widget.js").encode()).decode()
    columns = {name: base64.b64encode(data.packed(name)).decode() for name in data.columns}
    page.evaluate(MODEL, [code, data.summary, columns])
    yield page
    page.close()
    assert not wrong


def test_lasso_sends_the_selection_to_python(notebook: Any) -> None:
    notebook.get_by_role("button", name="Lasso").click()
    area = notebook.locator(".map").bounding_box()
    right, low = area["x"] + area["width"] - 9, area["y"] + area["height"] - 9
    notebook.mouse.move(area["x"] + 9, area["y"] + 9)
    notebook.mouse.down()
    for x, y in ((right, area["y"] + 9), (right, low), (area["x"] + 9, low)):
        notebook.mouse.move(x, y)
    notebook.mouse.up()
    assert notebook.evaluate("[model.traits.selection.length, model.saved]") == [240, 1]
    assert notebook.locator(".said").inner_text() == "240 selected"
    notebook.locator(".map").press("Escape")
    assert notebook.evaluate("model.traits.selection") == []


def test_selection_and_colour_from_python_are_shown(notebook: Any) -> None:
    shown = notebook.locator(".map").screenshot
    before = shown()
    notebook.evaluate("model.set('selection', [1, 2, 3])")
    notebook.wait_for_timeout(150)
    assert notebook.locator(".said").inner_text() == "3 selected"
    chosen = shown()
    assert chosen != before
    notebook.evaluate("model.set('colour_by', 'meta1')")
    notebook.wait_for_timeout(150)
    assert notebook.locator("select").input_value() == "meta1"
    assert shown() != chosen
    keep_picture(notebook, "widget")


def test_nothing_stays_behind_a_widget_that_is_closed(notebook: Any) -> None:
    notebook.evaluate("end()")
    assert notebook.locator("canvas").count() == 0
    assert notebook.evaluate("Object.values(model.listeners).flat().length") == 0
