"""The HTML around the data of a page: what is seen before any script runs, and without any.

Everything that comes from users is escaped. The script takes the place of this header and table.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from viewfold.web import static_text

if TYPE_CHECKING:
    from viewfold.web import PageData

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""What the page may do: run what is in it, and ask nobody for anything. The map compiles its draw
calls, which needs ``unsafe-eval``."""

FIRST = ("x", "y", "cluster")
"""The columns without which there is no map."""


def html(data: PageData) -> Iterator[str]:
    """Yield a page, piece by piece: columns come last, so that the rest is seen at once."""
    told = data.summary
    title = escape(told["title"])
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="viewfold {escape(told["version"])}">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f"<title>{title}</title>\n<style>\n{static_text('page.css')}\n</style>\n</head>\n<body>\n"
        f'<main id="page"><div class="viewfold">\n{_header(told)}\n'
        '<noscript><p class="warning">Map and figures are drawn with JavaScript, which is switched '
        "off. This page loads nothing from anywhere.</p></noscript>\n"
        f"{_clusters(told['clusters'])}\n</div></main>\n"
    )
    yield f'<script type="application/json" id="summary">{in_script(told)}</script>\n'
    yield f"<script>\n{_code(static_text('page.js'))}\n</script>\n"
    yield (
        '<script>viewfold.start(document.getElementById("page"), viewfold.embedded(document))'
        "</script>\n"
    )
    for name in sorted(data.columns, key=lambda name: (name not in FIRST, name == "ids")):
        text = base64.b64encode(gzip.compress(data.packed(name), 9, mtime=0)).decode("ascii")
        yield f'<script type="application/octet-stream" id="column-{name}">{text}</script>\n'
    yield "</body>\n</html>\n"


def in_script(told: dict[str, Any]) -> str:
    r"""Return data as JSON that cannot end the script that it stands in.

    Examples
    --------
    >>> from viewfold.web._shell import in_script
    >>> in_script({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(told, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _code(script: str) -> str:
    """Return a script in which nothing can be taken for the end of its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _header(told: dict[str, Any]) -> str:
    """Return the title and the key numbers."""
    n, moved = told["n"], told["moved"]
    share = 100 * told["complete"] / n
    moves = ("–", "first step")
    if moved is not None:
        moves = f"{moved['count']:,}", f"{100 * moved['share']:.1f} %"
    views, clusters = len(told["views"]), len(told["clusters"])
    tiles = [
        ("sample" if n == 1 else "samples", f"{n:,}", ""),
        ("view" if views == 1 else "views", f"{views:,}", ""),
        ("cluster" if clusters == 1 else "clusters", f"{clusters:,}", ""),
        ("in every view", f"{told['complete']:,}", f"{share:.0f} %"),
        ("moved at the last step", *moves),
    ]
    items = "".join(
        f"<div><dt>{word}</dt><dd>{value}{f'<small>{small}</small>' if small else ''}</dd></div>"
        for word, value, small in tiles
    )
    since = f"\n<p>{escape(told['since']['text'])}</p>" if told["since"] else ""
    title = escape(told["title"])
    return f'<header><h1>{title}</h1>\n<dl class="numbers">{items}</dl>{since}</header>'


def _clusters(clusters: list[dict[str, Any]]) -> str:
    """Return the table of clusters."""
    heads = "cluster", "samples", "share", "confidence", "stability"
    rows = []
    for one in clusters:
        name = f' <span class="name">{escape(one["name"])}</span>' if one["name"] else ""
        cells = {
            "samples": f"{one['size']:,}",
            "share": f"{100 * one['share']:.1f} %",
            **{k: "–" if one[k] is None else f"{one[k]:.2f}" for k in heads[3:]},
        }
        dot = f'<i class="dot" style="background: {one["colour"]}"></i>'
        data = "".join(f'<td data-label="{word}">{cell}</td>' for word, cell in cells.items())
        rows.append(
            f'<tr><th scope="row"><span>{dot}<b>{one["number"]}</b>{name}</span></th>{data}</tr>'
        )
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    return (
        f'<section><h2>The clusters</h2>\n<div class="table"><table class="clusters">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody></table></div>"
        "</section>"
    )
