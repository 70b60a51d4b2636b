"""Formulas of docstrings as SVG, drawn by matplotlib: MathJax would be fetched from a network."""

from __future__ import annotations

import io
import re
from typing import Any

from docutils import nodes


def drawn(latex: str) -> str:
    """Return a formula as inline SVG, in the colour of the text around it."""
    from matplotlib import rc_context
    from matplotlib.mathtext import math_to_image

    latex = re.sub(r"\\(ge|le|ne)\b", r"\\\1q", latex)  # matplotlib knows the long names only
    latex = latex.replace(r"\tfrac", r"\frac")
    text = io.StringIO()
    with rc_context({"mathtext.fontset": "dejavusans", "svg.hashsalt": "viewfold"}):
        math_to_image(f"${' '.join(latex.split())}$", text, format="svg")
    svg = text.getvalue()[text.getvalue().index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    background = r'<g id="patch_1">.*?</g>'
    return re.sub(background, "", svg, count=1, flags=re.DOTALL).replace(
        "<svg", "<svg class='math'", 1
    )


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    writer.body.append(drawn(node.astext()))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    writer.body.append(f'<div class="math">{drawn(node.astext())}</div>')
    raise nodes.SkipNode
