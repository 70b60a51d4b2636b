"""The built page is the page of the sources beside it, and says whose code is in it."""

import hashlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "page"
STATIC = ROOT / "src" / "viewfold" / "web" / "static"
BUILT = sorted(path for path in STATIC.glob("*") if path.suffix in (".js", ".css"))


def digest() -> str:
    """The digest over names and contents of the sources, as build.mjs has it."""
    beside = [PAGE / name for name in ("build.mjs", "package.json", "package-lock.json")]
    found = [*(path for path in (PAGE / "src").rglob("*") if path.is_file()), *beside]
    sources = sorted((path.relative_to(PAGE).as_posix(), path) for path in found)
    both = hashlib.sha256()
    for name, path in sources:
        both.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return both.hexdigest()


def lock() -> dict[str, dict[str, str]]:
    packages: dict[str, dict[str, str]] = json.loads((PAGE / "package-lock.json").read_bytes())[
        "packages"
    ]
    return packages


def test_what_is_loaded_is_there() -> None:
    assert {"page.js", "page.css", "widget.js"} <= {path.name for path in BUILT}


@pytest.mark.parametrize("built", BUILT, ids=lambda path: path.name)
def test_built_files_are_of_the_sources(built: Path) -> None:
    first = built.read_text(encoding="utf-8").partition("\n")[0]
    found = re.search(r"sources with sha256 ([0-9a-f]{64})", first)
    assert found
    assert found[1] == digest(), "the sources changed: run `make page`"


def test_licences_of_what_is_bundled_are_told() -> None:
    text = (STATIC / "LICENSES.txt").read_text(encoding="utf-8")
    heads = re.findall(r"^(\S+) (\S+) \(([^)]+)\)\n-+\n(.*)$", text, re.MULTILINE)
    told = {name: version for name, version, _, _ in heads}
    used = {"regl-scatterplot", "regl", "gl-matrix", "kdbush", "@observablehq/plot", "d3-scale"}
    assert used <= set(told)
    packages = lock()
    assert told == {name: packages[f"node_modules/{name}"]["version"] for name in told}
    assert {licence for _, _, licence, _ in heads} <= {"MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause"}
    assert all(first.strip() for *_, first in heads), "a package without the text of its licence"


def test_lock_file_names_no_registry() -> None:
    assert not [name for name, about in lock().items() if "resolved" in about]
    assert all("integrity" in about for name, about in lock().items() if name)


@pytest.mark.parametrize("source", sorted((PAGE / "src").rglob("*.js")), ids=lambda path: path.name)
def test_no_source_makes_markup_of_data(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)
    assert "console." not in text
