"""The pages of research/: examples run, commands are understood, and links lead somewhere."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

from viewfold.cli import app

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parent
PAGES = [HERE / "README.md", *sorted(HERE.glob("docs/*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n+)?```(?P<kind>[^\n`]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    text = page.read_text(encoding="utf-8")
    return [(found["kind"], found["text"], found["why"] or "") for found in BLOCK.finditer(text)]


@each_page
def test_examples_run_and_commands_say_why_they_do_not(page: Path) -> None:
    for kind, text, why in blocks(page):
        if kind in ("", "sh", "console"):
            assert why, f"say <!-- not run: why --> above\n{text}"
        elif kind == "python" and ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
            assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
        elif kind == "python":
            exec(compile(text, str(page), "exec"), {})


def commands(page: Path) -> list[list[str]]:
    """Return the words of every `viewfold …` in a block of a page or between backquotes."""
    text = page.read_text(encoding="utf-8")
    lines = [
        line for _, block, _ in blocks(page) for line in block.replace("\\\n", " ").splitlines()
    ]
    lines += re.findall(r"`(viewfold bench [^`]*)`", text)
    return [shlex.split(one, comments=True)[1:] for one in lines if one.startswith("viewfold ")]


@each_page
def test_commands_have_the_options_that_pages_give_them(page: Path) -> None:
    for words in commands(page):
        context, command, rest = click.Context(app), app, words
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            name, *rest = rest
            found = command.get_command(context, name)
            assert found is not None, words
            command = found
        if rest and rest != ["--help"]:
            command.make_context(words[-1], list(rest))


def test_there_are_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 15


@each_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        assert target.is_file(), link
        assert target.is_relative_to(ROOT), link
        if parts.fragment:
            headings = re.findall(r"^#+ +(.*?) *$", target.read_text(encoding="utf-8"), re.M)
            anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert parts.fragment in anchors, link


def test_the_words_are_those_of_the_field() -> None:
    """CONTRIBUTING.md asks for them; these were others for the same things."""
    others = re.compile(
        r"\b(foretells?|foretold|tied|doubt(s|ed)?|walked|sharpen(s|ed)?|main directions)\b", re.I
    )
    texts = [p for p in HERE.rglob("*.*") if p.suffix in (".py", ".md") and p != Path(__file__)]
    assert not [p.name for p in texts if others.search(p.read_text(encoding="utf-8"))]
