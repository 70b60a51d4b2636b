"""What the site needs of Sphinx: pages filled in, links in docstrings, llms.txt, no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import formulas
import from_code
import layers
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=["'](https?:[^"']+)"""
)
log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect everything."""
    app.add_role("viewfold", _name)
    app.add_html_math_renderer("svg", (formulas.visit_inline, None), (formulas.visit_block, None))
    app.connect("missing-reference", _resolved)
    app.connect("source-read", _fill)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    app.connect("build-finished", _write_llms)
    app.connect("build-finished", _tell_of_elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _name(role: str, raw: str, text: str, line: int, inliner: Any, *_: Any) -> Any:
    """Write `name` of a docstring as code, and link it if it is a public name of viewfold."""
    code = nodes.literal(raw, text)
    if not re.fullmatch(r"[A-Za-z_][\w.]*", text):
        return [code], []
    env = inliner.document.settings.env
    link = pending_xref(
        "",
        code,
        refdomain="py",
        reftype="obj",
        reftarget=text,
        refdoc=env.docname,
        refexplicit=False,
        refsoft=True,
        **{
            "py:module": env.ref_context.get("py:module"),
            "py:class": env.ref_context.get("py:class"),
        },
    )
    return [link], []


def _resolved(app: Sphinx, env: Any, node: Any, code: nodes.Node) -> nodes.Node | None:
    """Find a name of a docstring among viewfold's own; others, such as parameters, stay code."""
    if not node.get("refsoft"):
        return None
    known, name = env.domains["py"].objects, node["reftarget"]
    for full in (f"viewfold.{name}", f"viewfold.ViewFold.{name}"):
        if full in known:
            at = known[full]
            return make_refnode(app.builder, node["refdoc"], at.docname, at.node_id, code, full)
    return code


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = layers.drawn(from_code.filled(source[0]))
    pages = getattr(app.env, "viewfold_pages", None)
    if pages is None:
        pages = app.env.viewfold_pages = {}
    pages[page] = source[0]


def _purge(app: Sphinx, env: Any, page: str) -> None:
    getattr(env, "viewfold_pages", {}).pop(page, None)


def _merge(app: Sphinx, env: Any, pages: list[str], other: Any) -> None:
    if not hasattr(env, "viewfold_pages"):
        env.viewfold_pages = {}
    env.viewfold_pages.update(getattr(other, "viewfold_pages", {}))


def _tell_of_elsewhere(app: Sphinx, error: Exception | None) -> None:
    """Warn of pages that a browser would fetch something for: the site is to work offline."""
    if error or app.builder.name != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        if found := FETCHED.search(page.read_text(encoding="utf-8")):
            log.warning("%s fetches %s", page.relative_to(app.outdir), found[1])


# ---- llms.txt -----------------------------------------------------------------------------------


def _write_llms(app: Sphinx, error: Exception | None) -> None:
    """Write llms.txt (what there is, https://llmstxt.org) and llms-full.txt (all of it)."""
    if error or app.builder.name != "html":
        return
    env, out = app.env, Path(app.outdir)
    lines = ["# viewfold", "", f"> {_summary(env.viewfold_pages['index'])}", ""]
    whole = []
    for section, pages in _sections(env):
        lines += [f"## {section}", ""]
        for page in pages:
            text = env.viewfold_pages.get(page, "")
            said = _summary(text)
            lines.append(
                f"- [{env.titles[page].astext()}]({page}.html){': ' + said if said else ''}"
            )
            whole.append(f"<!-- {page}.html -->\n\n{text.strip()}\n")
        lines.append("")
    (out / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    (out / "llms-full.txt").write_text("\n\n".join(whole), encoding="utf-8")


def _sections(env: Any) -> list[tuple[str, list[str]]]:
    """Return the parts of the site with their pages, in the order of the navigation."""

    def below(page: str) -> list[str]:
        return [page, *(p for one in env.toctree_includes.get(page, []) for p in below(one))]

    top = env.toctree_includes["index"]
    return [(env.titles[page].astext(), list(dict.fromkeys(below(page)))) for page in top]


def _summary(text: str) -> str:
    """Return the first sentence of a page, without marks."""
    text = re.sub(r"<!--.*?-->|^(```|:{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\.\. .*\n(?:\n|    ?.*\n)*|^.*\n[=\-]+$|^:\w+:$", "", text, flags=re.MULTILINE)
    blocks = (block.strip() for block in re.split(r"\n\s*\n", text))
    plain = (block for block in blocks if block and not re.match(r"[#<|!(=\-]|\d\.", block))
    first = " ".join(next(plain, "").split())
    first = re.sub(r"(?:\{\w+\}|:\w+:)`([^`<]+?)(?: <[^`]*>)?`", r"\1", first)
    first = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", first).replace("**", "")
    return re.split(r"(?<=[.?!]) ", first)[0]
