"""Write docs/architecture.md from the code: the rooms, what each is for, and who imports whom.

The arrows come from the import graph, the order of the rooms from import-linter's layers in
pyproject.toml, and the sentences from the first lines of the docstrings.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = "viewfold"
BESIDE = {"__main__", "datasets", "errors", "metrics", "plot"}  # no part of the way data takes
Graph = dict[str, set[str]]

TEXT = """\
# Architecture

<!-- Written by `make architecture`; changes by hand are lost. -->

`viewfold` has {number} rooms. A room is a package; the others see its `__init__` and its modules
without an underscore. An arrow is an import; those that other arrows imply are left out. A room
imports only what is below it: `make lint` refuses anything else.

```mermaid
flowchart TD
{arrows}
```

Data takes one way through them, and no step changes what it was given:

    anything ─ data ─▶ View ─ rows ─▶ aligned rows ─ state, method ─▶ State ─▶ store, cli, web

A transition takes a state and a view and returns a new state. Estimators, commands, the page and
the engines call the same transitions.

| room | what it is for |
|---|---|
{rooms}

Beside them: {beside}.
"""


def layers() -> list[str]:
    """Return the rooms of import-linter's layers, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (ordered,) = (c["layers"] for c in contracts if c["type"] == "layers")
    return [room for row in ordered for room in re.findall(rf"{PACKAGE}\.(\w+)", row)]


def imports() -> Graph:
    """Return which other rooms the modules of every room import."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    found: Graph = {}
    for room in graph.find_children(PACKAGE):
        inside = {room, *graph.find_descendants(room)}
        imported = {m for one in inside for m in graph.find_modules_directly_imported_by(one)}
        others = imported - inside - {PACKAGE}
        found[room.split(".")[1]] = {module.split(".")[1] for module in others}
    return found


def reachable(graph: Graph, start: str) -> set[str]:
    """Return everything that a room imports, directly or not."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        new = graph[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


def arrows(graph: Graph) -> list[str]:
    """Return the imports as lines of Mermaid, without those that a longer chain implies."""
    left = {room: graph[room] - BESIDE for room in graph if room not in BESIDE}
    for room, imported in left.items():
        for other in sorted(imported):
            imported.remove(other)
            if other not in reachable(left, room):
                imported.add(other)
    drawn = [room for room in layers() if left.get(room)]
    return [f"  {room} --> {' & '.join(sorted(left[room]))}" for room in drawn]


def purpose(room: str) -> str:
    """Return the first line of the docstring of a room."""
    folder = ROOT / "src" / PACKAGE / room
    source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("``", "`").replace("|", "\\|")


def page() -> str:
    """Return the text of the page."""
    graph = imports()
    rooms = [room for room in layers() if room not in BESIDE]
    words = {11: "eleven"}.get(len(rooms), len(rooms))
    return TEXT.format(
        number=words,
        arrows="\n".join(arrows(graph)),
        rooms="\n".join(f"| `{room}` | {purpose(room)} |" for room in rooms),
        beside=", ".join(f"`{room}`" for room in sorted(BESIDE)),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
