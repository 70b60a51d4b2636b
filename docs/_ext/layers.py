"""The picture of docs/architecture.md without a network: its Mermaid text becomes an SVG.

GitHub draws Mermaid by itself. A site would have to fetch a program of several megabytes for it.
"""

from __future__ import annotations

import re
from html import escape

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDE, HIGH, ACROSS, DOWN = 108, 26, 14, 16


def drawn(page: str) -> str:
    """Return a page with its Mermaid flowcharts as inline SVG."""
    return BLOCK.sub(lambda found: svg(found[1]), page)


def svg(chart: str) -> str:
    """Draw a flowchart; a room stands below all that import it."""
    arrows = [
        (room, other)
        for room, others in re.findall(r"^  (\w+) --> (.+)$", chart, re.MULTILINE)
        for other in others.split(" & ")
    ]
    depth = dict.fromkeys((room for arrow in arrows for room in arrow), 0)
    for _ in depth:  # the longest chain has no more rooms than there are
        for room, other in arrows:
            depth[other] = max(depth[other], depth[room] + 1)
    rows = [[room for room in depth if depth[room] == y] for y in range(max(depth.values()) + 1)]
    width = max(len(row) for row in rows) * (WIDE + ACROSS) + ACROSS
    height = len(rows) * (HIGH + DOWN)
    place = {}
    for y, row in enumerate(rows):
        left = (width - len(row) * (WIDE + ACROSS) + ACROSS) / 2
        for x, room in enumerate(row):
            place[room] = (left + x * (WIDE + ACROSS) + WIDE / 2, y * (HIGH + DOWN) + HIGH / 2 + 2)
    lines = [_arrow(*place[one], *place[other]) for one, other in arrows]
    boxes = [_box(room, *place[room]) for room in place]
    return (  # in a div, or Markdown would take _util for emphasis
        f'<div><svg class="rooms" role="img" aria-label="Rooms, with arrows for imports" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{''.join(lines)}{''.join(boxes)}</svg></div>"
    )


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    down = 1 if to_y >= y else -1
    y, to_y = y + down * HIGH / 2, to_y - down * HIGH / 2
    middle = (y + to_y) / 2
    curve = f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
    return f'<path d="M{x:.0f} {y:.0f}{curve}"/>'


def _box(room: str, x: float, y: float) -> str:
    left, top = x - WIDE / 2, y - HIGH / 2
    return (
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{WIDE}" height="{HIGH}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}">{escape(room)}</text>'
    )
