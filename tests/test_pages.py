"""docs/: everything that a page shows works as shown, or says why it is not run."""

import re
import sys
from pathlib import Path

import pytest
from pages import DOCS, RUN_BY, SHELL, blocks, in_folder_of_page, run_page

ROOT = DOCS.parent
PAGES = sorted(
    path for path in DOCS.rglob("*.md") if not {"_build", "auto_gallery"} & set(path.parts)
)
CORE = {"numpy", "pandas", "scipy", "sklearn", "viewfold"}
NEEDS = {"howto/files.md": "openpyxl"}
"""Pages that use what not everybody has installed, beside anndata."""


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS))


def test_blocks_are_found_and_told_apart() -> None:
    page = """
<!-- prepare
x = 1
-->
```python
>>> x
```
<!-- not run: no network -->
```sh
pip install viewfold
```
```
$ viewfold add
```
```json
{}
```
```console
$ viewfold status a.vf
```
"""
    found = [(block.kind, block.why) for block in blocks(page)]
    assert found == [
        ("prepare", ""),
        ("python", ""),
        ("shell", "no network"),
        ("shell", ""),
        ("console", ""),
    ]


def test_what_a_page_shows_wrongly_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for right, wrong in [
        ("```console\n$ echo 12 new\n12 new\n```", "```console\n$ echo 12 new\n13 new\n```"),
        ("```python\n>>> 1 + 1\n2\n```", "```python\n>>> 1 + 1\n3\n```"),
        ("```python\nint(1)\n```", "```python\nint(one)\n```"),
        ("```sql\nSELECT 1;\n```", "```sql\nSELECT nothing;\n```"),
    ]:
        run_page(right)
        with pytest.raises(Exception, match=r"."):
            run_page(wrong)
        run_page(f"<!-- not run: it is wrong -->\n{wrong}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    for block in blocks(text_of(page)):
        assert block.kind != "shell" or block.why, (
            f"line {block.line}: show it as ```console with its answers, or say "
            f"<!-- not run: why --> above it:\n{block.text}"
        )
    for language in re.findall(r"^```(\w+) \S", text_of(page), re.MULTILINE):
        assert language not in (*SHELL, "python"), "say <!-- not run: why --> above the block"


RUN = [page for page in PAGES if not RUN_BY.search(text_of(page))]
RUN = [page for page in RUN if any(not block.why for block in blocks(text_of(page)))]


@pytest.mark.usefixtures("quick_pages")
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_everything_on_the_page_works_as_shown(page: Path, tmp_path: Path) -> None:
    if name_of(page) in NEEDS:
        pytest.importorskip(NEEDS[name_of(page)])
        pytest.importorskip("anndata")
    in_folder_of_page(page, lambda: run_page(text_of(page)), tmp_path)


def test_pages_that_others_run_are_known_to_them() -> None:
    for page in set(PAGES) - set(RUN):
        for test in RUN_BY.findall(text_of(page)):
            assert page.stem in (ROOT / test).read_text(encoding="utf-8"), f"{test}, {page.stem}"


@pytest.mark.parametrize("page", [p for p in PAGES if "](make_" in text_of(p)], ids=name_of)
def test_a_page_names_the_extra_that_its_script_needs(page: Path) -> None:
    """A reader who has the core only must not meet a ModuleNotFoundError on the first line."""
    for script in set(re.findall(r"\]\((make_\w+\.py)\)", text_of(page))):
        code = (page.parent / script).read_text(encoding="utf-8")
        imported = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE))
        others = imported - CORE - sys.stdlib_module_names
        assert not others or "viewfold[parquet]" in text_of(page), others
        assert others <= {"pyarrow"}
