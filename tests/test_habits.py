"""The files around the code say what the code says: changelog, citation, workflow, hooks, guide."""

import re
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

import viewfold

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):", read("Makefile"), re.MULTILINE))


def combinations(job: dict[str, Any]) -> list[dict[str, str]]:
    """Every combination of a job's matrix. An entry of `include` is taken as one of its own."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    extra = matrix.pop("include", [])
    return [dict(zip(matrix, values, strict=True)) for values in product(*matrix.values())] + extra


def commands(job: dict[str, Any]) -> set[str]:
    """What a job runs, with the values of its matrix filled in."""
    lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
    return {
        re.sub(r"\$\{\{ *matrix\.(\w+) *\}\}", lambda found: values[found[1]], line)  # noqa: B023
        for line in lines
        for values in combinations(job)
    }


def jobs() -> dict[str, dict[str, Any]]:
    return {
        name: job
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text())["jobs"].items()
    }


# ---- workflow and hooks -------------------------------------------------------------------------


def test_workflow_runs_make_targets_that_exist_and_nothing_else() -> None:
    found = {command for job in jobs().values() for command in commands(job)}
    assert found
    assert found <= {f"make {target}" for target in make_targets()}


def test_workflow_covers_every_python_and_both_ends_of_the_dependencies() -> None:
    runs = {(values["python"], values["target"]) for values in combinations(jobs()["test"])}
    pythons = ["3.11", "3.12", "3.13", "3.14"]
    assert {(python, target) for python in pythons for target in ("test", "test-newest")} < runs
    lowest = project()["project"]["requires-python"].removeprefix(">=")
    assert (lowest, "test-oldest") in runs
    assert min(pythons) == lowest


def test_hooks_are_the_tools_of_make_lint() -> None:
    repos = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    called = [hook["entry"].split()[0] for hook in repos[0]["hooks"]]
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", read("Makefile"), re.MULTILINE)
    assert recipe
    assert called == [f".venv/bin/{tool}" for tool in re.findall(r"\$\(BIN\)/([\w-]+)", recipe[1])]


# ---- citation and changelog ---------------------------------------------------------------------


def test_citation_is_of_this_version() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # required by the form
    assert all({"type", "title", "authors"} <= set(work) for work in citation["references"])
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == viewfold.__version__
    assert citation["license"] == project()["project"]["license"]


def test_changelog_has_the_form_of_keep_a_changelog() -> None:
    versions = re.findall(r"^## (.*)$", read("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    form = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)")
    released = [form.fullmatch(version) for version in versions[1:]]
    assert all(released), versions
    numbers = [tuple(map(int, found.groups()[:3])) for found in released if found]
    assert numbers == sorted(set(numbers), reverse=True)
    assert ".".join(map(str, numbers[0])) == viewfold.__version__


def test_changes_stand_under_the_kinds_of_keep_a_changelog() -> None:
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for version in re.split(r"^## ", read("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        intro, *sections = re.split(r"^### ", version, flags=re.MULTILINE)
        assert "\n- " not in intro, "a change without a kind"
        found = [section.partition("\n")[0] for section in sections]
        assert set(found) <= kinds
        assert len(set(found)) == len(found), f"a kind twice: {found}"
        assert all("\n- " in section for section in sections), "a kind without a change"


# ---- guide --------------------------------------------------------------------------------------


def test_guide_names_make_targets_that_exist_and_explains_all() -> None:
    named = set(re.findall(r"`make ([\w-]+)`", read("CONTRIBUTING.md")))
    assert named <= make_targets()
    assert named | {"demo", "clean"} == make_targets()


def test_every_make_target_is_phony() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == make_targets()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_lead_to_files_and_headings_that_exist(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", read(page)):
        name, _, anchor = target.partition("#")
        assert (ROOT / name).is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", read(name), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target


def test_pins_cover_every_dependency() -> None:
    def plain(requirement: str) -> str:
        return re.split(r"[\[<>=~! ;]", requirement)[0].lower().replace("_", "-")

    listed = project()["project"]
    wanted = [*listed["dependencies"], *listed["optional-dependencies"]["dev"]]
    pinned = {plain(line) for line in read("constraints.txt").splitlines() if "==" in line}
    assert {plain(name) for name in wanted} - {listed["name"]} <= pinned


def test_files_of_tests_have_no_more_lines_than_the_guide_says() -> None:
    most = re.search(r"none more than (\d+)", read("CONTRIBUTING.md"))
    assert most
    lines = {p.name: len(read(f"tests/{p.name}").splitlines()) for p in ROOT.glob("tests/*.py")}
    assert {name for name, many in lines.items() if many > int(most[1])} == set()


@pytest.mark.parametrize("folder", ["src", "docs", "."])
def test_the_words_are_those_of_the_field(folder: str) -> None:
    """CONTRIBUTING.md asks for them; these were others for the same things."""
    others = re.compile(
        r"\b(foretells?|foretold|tied|doubt(s|ed)?|walked|sharpen(s|ed)?|main directions)\b", re.I
    )
    pages = (ROOT / folder).glob("*.md") if folder == "." else (ROOT / folder).rglob("*.*")
    texts = [page for page in pages if page.suffix in (".py", ".md", ".jinja", ".j2")]
    assert texts
    assert not [page.name for page in texts if others.search(page.read_text(encoding="utf-8"))]
