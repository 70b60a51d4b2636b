"""No dead link: files and headings that pages link to are there, addresses are well formed."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {"_build", "auto_gallery"}
PAGES = sorted(
    [*ROOT.glob("*.md"), *(p for p in ROOT.glob("docs/**/*.md") if not GENERATED & set(p.parts))]
)
LINK = re.compile(
    r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^)]*\))?)\)|!\[[^\]]*\]\(([^)\s]+)\)"
)
MADE = re.compile(r"^<!-- made: outside (\w+) -->$", re.MULTILINE)


def plain(page: str) -> str:
    """Return a page without code and comments, which hold no links."""
    page = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "`code`", re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL))


def links(page: str) -> list[str]:
    return [one or other for one, other in LINK.findall(plain(page))]


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    page = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,4} +(.*?) *$", page, re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 1
        while (name := anchor if number == 1 else f"{anchor}-{number - 1}") in found:
            number += 1
        found.add(name)
    return found


def fault(page: Path, link: str) -> str:
    """Say what is wrong with a link, if anything."""
    parts = urlsplit(link)
    if parts.scheme:
        good = parts.scheme in ("http", "https", "mailto") and (parts.netloc or parts.path)
        return "" if good and "." in link else "is no address"
    target = (page.parent / parts.path).resolve() if parts.path else page
    if "auto_gallery" in target.parts:  # made by the build, which checks it
        return ""
    if not target.is_file():
        return "leads to no file"
    if not target.is_relative_to(ROOT):
        return "leads out of the repository"
    if not parts.fragment:
        return ""
    if target.suffix != ".md":
        return "has an anchor that is no heading"
    text = target.read_text(encoding="utf-8")
    for name in MADE.findall(text):
        text += (ROOT / f"{name}.md").read_text(encoding="utf-8")
    return "" if parts.fragment in anchors(text) else "leads to no heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    found = links(page.read_text(encoding="utf-8"))
    assert not {link: said for link in found if (said := fault(page, link))}


def test_dead_links_are_found() -> None:
    page = ROOT / "docs" / "views.md"
    wrong = ["gone.md", "method.md#gone", "#gone", "http:/x", "../../outside.md", "fold.svg#a"]
    assert all(fault(page, link) for link in wrong)
    right = [
        "method.md#how-sure",
        "#missing-cells",
        "fold.svg",
        "https://duckdb.org",
        "howto/index.md",
    ]
    assert not [link for link in right if fault(page, link)]
    text = (
        "[a](x.md) ![b](y.svg) `[c](z.md)` [`d`](w.md#e) <!-- [f](v.md) -->\n```\n[g](u.md)\n```\n"
    )
    assert links(text) == ["x.md", "y.svg", "w.md#e"]
    assert anchors("# A b\n## `c`: d, e?\n## A b\n") == {"a-b", "c-d-e", "a-b-1"}


def test_there_are_pages_and_links() -> None:
    assert len(PAGES) > 40
    assert sum(len(links(page.read_text(encoding="utf-8"))) for page in PAGES) > 150
