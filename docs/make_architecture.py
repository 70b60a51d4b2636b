"""Write docs/architecture.md from the code: which room imports which, and what it may import.

The imports come from the import graph, the layers from import-linter's contract in pyproject.toml,
and the descriptions from the first lines of the docstrings: nothing on the page is typed by hand.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = "viewfold"
Graph = dict[str, set[str]]

HEAD = f"""\
# Architecture

<!-- Written by `make architecture`; changes by hand are lost. -->

A room is a module or package directly under `{PACKAGE}`. Rooms stand in layers. A room may import
rooms of the layers below its own, and rooms outside the layers unless they lead back up;
`make lint` refuses anything else. `{PACKAGE}/__init__.py` only collects the public names.
"""


def linter() -> dict[str, Any]:
    """Return import-linter's part of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["tool"]["importlinter"])


def short(module: str) -> str:
    """Return the name of a module without the package (and the brackets of an optional layer)."""
    return module.strip(" ()").removeprefix(f"{PACKAGE}.")


def layers(contracts: list[dict[str, Any]]) -> list[tuple[list[str], bool]]:
    """Return rooms, and whether they may import each other, for every layer from the top."""
    (contract,) = (c for c in contracts if c["type"] == "layers")
    return [([short(m) for m in re.split("[|:]", row)], ":" in row) for row in contract["layers"]]


def rooms(settings: dict[str, Any]) -> Graph:
    """Return which other rooms the modules of every room import."""
    skip = settings.get("exclude_type_checking_imports", False)
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=skip, cache_dir=None)
    found: Graph = {}
    for room in graph.find_children(PACKAGE):
        inside = {room, *graph.find_descendants(room)}
        imported = {m for one in inside for m in graph.find_modules_directly_imported_by(one)}
        found[short(room)] = {short(m).split(".")[0] for m in imported - inside - {PACKAGE}}
    return found


def description(room: str) -> str:
    """Return the first line of the docstring of a room."""
    path = ROOT / "src" / PACKAGE / room / "__init__.py"
    source = path if path.exists() else path.parent.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("``", "`").replace("|", "\\|")


def reachable(graph: Graph, start: str) -> set[str]:
    """Return everything that `start` imports, directly or not."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        new = graph[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


def without_shortcuts(graph: Graph) -> Graph:
    """Remove every import that a longer chain of imports implies: the picture stays readable."""
    left = {room: set(imported) for room, imported in graph.items()}
    for room in sorted(graph):
        for other in sorted(graph[room]):
            left[room].remove(other)
            if other not in reachable(left, room):
                left[room].add(other)
    return left


def names(found: set[str] | list[str]) -> str:
    """Return names as a list in Markdown."""
    return ", ".join(f"`{name}`" for name in sorted(found)) or "–"


def table(graph: Graph, ordered: list[tuple[list[str], bool]]) -> list[str]:
    """Return the table of all rooms, the top layer first."""
    lines = ["| layer | room | what lives there | imports | may import |", "|---|---|---|---|---|"]
    outside = set(graph) - {room for row, _ in ordered for room in row}
    for below in range(len(ordered) - 1, -1, -1):
        row, together = ordered[len(ordered) - 1 - below]
        for room in row:
            allowed = ["–", "layer 1", f"layers 1 to {below}"][min(below, 2)]
            allowed += f", {names(set(row) - {room})}" if together else ""
            cells = (f"{below + 1}", f"`{room}`", description(room), names(graph[room]), allowed)
            lines.append(f"| {' | '.join(cells)} |")
    for room in sorted(outside):
        cells = ("outside", f"`{room}`", description(room), names(graph[room]), "see the rules")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def picture(graph: Graph, ordered: list[tuple[list[str], bool]]) -> list[str]:
    """Return the rooms and their imports as a Mermaid diagram."""
    lines = ["```mermaid", "flowchart TD"]
    for i, (row, _) in enumerate(ordered):
        lines += [f'  subgraph layer{len(ordered) - i}["{len(ordered) - i}"]']
        lines += [f"    {room}" for room in row] + ["  end"]
    for room, imported in sorted(without_shortcuts(graph).items()):
        lines += [f"  {room} --> {other}" for other in sorted(imported)]
    return [*lines, "```"]


def rules(contracts: list[dict[str, Any]]) -> list[str]:
    """Return the contracts other than the layers, in words."""
    lines = []
    for contract in contracts:
        if contract["type"] == "forbidden":
            source, target = (
                names([short(m) for m in contract[f"{which}_modules"]])
                for which in ("source", "forbidden")
            )
            how = " directly" if contract.get("allow_indirect_imports") else ""
            lines.append(f"- {contract['name']}: {source} may not import {target}{how}.")
        elif contract["type"] == "independence":
            modules = names([short(m) for m in contract["modules"]])
            lines.append(f"- {contract['name']}: none of {modules} imports another.")
        elif contract["type"] != "layers":
            lines.append(f"- {contract['name']}.")
    return lines


def page() -> str:
    """Return the text of the page."""
    settings = linter()
    contracts = settings["contracts"]
    graph, ordered = rooms(settings), layers(contracts)
    drawn = "An arrow is an import. Those that a chain of other arrows implies are left out."
    parts = [
        [HEAD.rstrip()],
        ["## Rooms"],
        table(graph, ordered),
        ["## Picture"],
        [drawn],
        picture(graph, ordered),
        ["## More rules"],
        rules(contracts),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    PAGE.write_text(page(), encoding="utf-8")
