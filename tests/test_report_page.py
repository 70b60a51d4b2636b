# ruff: noqa: F811  (fixtures of other files)
"""The report: one file that loads nothing, names nobody, and says what changed since the last."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from report_models import NAMES, Reader, few_draws, model, page  # noqa: F401

import viewfold
from commands import runner
from viewfold import ViewFold
from viewfold.web import report, static_text
from viewfold.web.words import from_line, printable

EVIL = "</script><img src=x onerror=alert(3)> & co"


def without_script(page: str) -> str:
    """The page without what was built from JavaScript libraries, and their styles."""
    script = static_text("page.js").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    assert page.count(script) == 1
    return page.replace(script, "").replace(static_text("page.css"), "")


def test_page_loads_nothing(page) -> None:
    reader = Reader(page)
    assert not re.search(r"https?:|@import|//\w+\.", without_script(page))
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "div",
        "header",
        "h1",
        "h2",
    }
    allowed |= {"dl", "dt", "dd", "small", "noscript", "p", "section", "table", "thead", "tbody"}
    allowed |= {"tr", "th", "td", "span", "i", "b", "script"}
    assert {tag for tag, _ in reader.tags} <= allowed
    assert not reader.values("src")
    assert not reader.values("href")
    policy = next(a["content"] for _, a in reader.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; ")
    assert not re.search(r"https?:|\*|'self'", policy)
    assert not re.search(r"@import|url\((?!['\"]?data:)", static_text("page.css"))


def test_page_names_nobody_unless_ids_are_let_in(model, page) -> None:
    reader = Reader(page)
    assert "secret" not in page
    assert all(one["id"] is None for one in reader.summary["uncertain"])
    columns = set(reader.summary["columns"])
    assert columns == {"x", "y", "cluster", "confidence", "coverage", "novelty"}
    assert {name for name in reader.scripts if name.startswith("column-")} == {
        f"column-{name}" for name in columns
    }
    named = Reader(report.render(model, ids=True))
    assert sorted(named.column("ids")) == sorted(model.ids_)


@pytest.mark.usefixtures("quick_pages")
def test_whatever_users_name_is_text_and_nothing_else() -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=[EVIL, "b", "c"])
    X.index = [f"{EVIL}\n{i}" for i in range(40)]
    X.iloc[:20] += 5
    model = ViewFold(2, random_state=0).fit({EVIL: X}).rename(1, EVIL)
    about = pd.DataFrame({EVIL: [EVIL, "b"] * 20}, index=X.index)
    page = report.render(model, title=f"{EVIL}\x00\u2028", ids=True, metadata=about)
    plain = without_script(page)
    assert "<img" not in plain
    assert "\u2028" not in plain
    assert plain.count("&lt;/script&gt;&lt;img src=x") == 3  # title twice, and a cluster's name
    reader = Reader(page)
    told = reader.summary
    assert told["title"] == rf"{EVIL}\x00 "
    assert told["views"][0]["name"] == told["clusters"][1]["name"] == EVIL
    assert EVIL in {one["feature"] for one in told["features"]["top"]}
    assert told["metadata"][0]["levels"] == [EVIL, "b"]
    assert all(from_line(line).startswith(f"{EVIL}\n") for line in reader.column("ids"))
    scripts = [tag for tag, _ in reader.tags].count("script")
    assert scripts == 3 + len(told["columns"])  # summary, page.js and its start, columns


HIDDEN = {"\u202e": r"\u202e", "\u2066": r"\u2066", "\x1b": r"\x1b", "\u200b": r"\u200b"}
"""Characters that turn text around, steer a terminal or take no room, and how they are shown."""


@pytest.mark.usefixtures("quick_pages")
@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_cannot_be_seen_is_shown_by_its_number(hidden: str) -> None:
    name, shown = f"fdp{hidden}exe", f"fdp{HIDDEN[hidden]}exe"
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=[name, "fdpexe"])
    X.index = [f"{name}{i}" for i in range(40)]
    model = ViewFold(2, random_state=0).fit({name: X})
    about = pd.DataFrame({name: [name, "fdpexe"] * 20}, index=X.index)
    page = report.render(model, title=name, ids=True, metadata=about)
    assert hidden not in without_script(page)
    reader = Reader(page)
    told = reader.summary
    assert hidden not in json.dumps(told, ensure_ascii=False)
    assert told["title"] == told["views"][0]["name"] == told["metadata"][0]["name"] == shown
    assert {one["feature"] for one in told["features"]["top"]} == {shown, "fdpexe"}
    assert set(told["metadata"][0]["levels"]) == {shown, "fdpexe"}
    assert {from_line(line) for line in reader.column("ids")} == set(X.index)


def test_joiners_are_part_of_words() -> None:
    words = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f52c"
    assert [printable(word) for word in words] == list(words)


def test_numbers_and_clusters_can_be_read_without_javascript(model, page) -> None:
    tiles = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)(?:<small>.*?)?</dd>", page))
    before, after = model.history_.to_numpy()[:, 1:].T
    moved = ((before >= 0) & (before != after)).sum()
    assert moved > 0
    assert tiles == {
        "samples": "160",
        "views": "3",
        "clusters": "4",
        "in every view": str(model.seen_.all(axis=1).sum()),
        "moved at the last step": str(moved),
    }
    rows, stable = Reader(page).rows, model.stability()["stability"]
    for c, own in model.to_frame().groupby("cluster")["confidence"]:
        share, mean = f"{100 * len(own) / 160:.1f} %", f"{own.mean():.2f}"
        assert rows[1 + c] == [str(c), str(len(own)), share, mean, f"{stable[c]:.2f}"]
    assert ("html", {"lang": "en"}) in Reader(page).tags
    assert "<noscript>" in page


def test_page_is_the_same_every_time(model, page) -> None:
    assert report.render(model) == page


def test_columns_come_last_and_those_of_the_map_first(page) -> None:
    order = re.findall(r'id="(summary|column-\w+|page)"', page)
    assert order[:5] == ["page", "summary", "column-x", "column-y", "column-cluster"]
    assert page.index("viewfold.start(") < page.index('id="column-x"')


def test_file_is_complete_or_untouched(model, page, tmp_path, monkeypatch) -> None:
    path = tmp_path / "report.html"
    assert report.write(model, str(path)) == path
    assert path.read_text(encoding="utf-8") == page
    monkeypatch.setattr(report, "render", lambda model, **how: f"<h1>{how['title']}</h1>")
    os.umask(mask := os.umask(0))
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            report.write(model, path, title="other")
    assert path.read_text(encoding="utf-8") == page
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere.*Make it"):
        report.write(model, tmp_path / "nowhere" / "report.html")


# ---- what changed since the last report ----------------------------------------------------------


def grown() -> ViewFold:
    y = np.repeat([0, 1, 2], 20)
    X = 9 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(60, 3))
    return ViewFold(3, random_state=0).partial_fit(X[:50], ids=range(50), view="labs")


def fold_more(model: ViewFold) -> ViewFold:
    X = 9 * np.eye(4)[np.arange(60) % 4] + np.random.default_rng(1).normal(size=(60, 4))
    return model.partial_fit(X, ids=range(60), view="scan").forget([3, 4])


def test_a_report_says_what_changed_since_the_one_that_it_replaces(quick_pages, tmp_path) -> None:
    path, model = tmp_path / "report.html", grown()
    report.write(model, path, since="last")
    assert Reader(path.read_text()).summary["since"] is None
    before = pd.Series(model.labels_, model.ids_)
    report.write(fold_more(model), path, since="last")
    now = pd.Series(model.labels_, model.ids_)
    since = Reader(path.read_text()).summary["since"]
    both = before.index.intersection(now.index)
    moved = int((before[both] != now[both]).sum())
    assert moved
    assert (since["entry"], since["new"], since["moved"], since["gone"]) == (1, 10, moved, 2)
    assert since["share"] == pytest.approx(moved / 48, abs=1e-4)
    assert sum(one["count"] for one in since["flow"] if one["from"] < 0) == 10
    assert sum(one["count"] for one in since["flow"]) == 58
    assert f"10 new samples, {moved} moved" in since["text"]
    # Nothing happened since: the page says the same again.
    page = path.read_text()
    report.write(model, path, since="last")
    assert path.read_text() == page


def test_samples_that_came_by_extend_are_new(quick_pages) -> None:
    model = fold_more(grown())
    X = 9 * np.eye(4)[np.arange(5) % 4]
    model.extend(X, ids=range(100, 105), view="scan")
    assert [report_since(model, entry) for entry in (2, 3, 4)] == [5, 5, 0]


def report_since(model: ViewFold, entry: int) -> int:
    return Reader(report.render(model, since=entry)).summary["since"]["new"]


def test_what_is_no_report_of_this_model_is_no_last_report(quick_pages, tmp_path) -> None:
    path, model = tmp_path / "report.html", grown()
    report.write(model, path)
    page = path.read_text()
    at = page.index('id="summary">') + len('id="summary">')
    for other in ("", "<h1>mine</h1>", page[: at + 100], page[:at] + "[" * 9**5 + page[at:]):
        path.write_text(other)
        assert report.last_report(path, fold_more(grown())) is None
    path.write_bytes(b"\xff\xfe\x00" * 1000)
    assert report.last_report(path, model) is None
    assert report.last_report(tmp_path, model) is None
    report.write(grown(), path)  # the same data, folded at another time
    assert report.last_report(path, fold_more(model)) is None


def test_an_entry_that_is_not_there_is_refused(quick_pages) -> None:
    model = fold_more(grown())
    for wrong in (0, 4, 99):
        with pytest.raises(ValueError, match=f"since={wrong}: labels are known from entry 1 to 3"):
            report.render(model, since=wrong)


def test_the_command_compares_colours_and_lets_ids_in(
    quick_pages, tmp_path, monkeypatch, capsys
) -> None:
    run = runner(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    about = pd.DataFrame({"who": range(70), "ward": ["ICU", "ER"] * 35, "sex": [0, 1] * 35})
    about.to_csv("wards.csv", index=False)
    grown().save("p.vf")
    code, out, said = run("report p.vf --json")
    assert (code, json.loads(out)["since"], "secret" in said) == (0, None, False)
    with viewfold.edit("p.vf") as model:
        fold_more(model)
    line = "report p.vf --metadata wards.csv --metadata-id who --metadata-columns ward"
    code, out, said = run(f"{line} --json")
    assert (code, json.loads(out)["since"]) == (0, 1)
    assert "Of no sample: 12 rows of the metadata." in said
    told = Reader((tmp_path / "report.html").read_text()).summary
    assert [one["name"] for one in told["metadata"]] == ["ward"]
    assert (told["title"], told["since"]["entry"], "ids" in told["columns"]) == ("p", 1, False)
    code, _, said = run("report p.vf -o named.html --ids --since 2")
    assert (code, "compared with entry 2" in said) == (0, True)
    assert (tmp_path / "named.html").stat().st_mode & 0o777 == 0o600  # as the state
    assert "ids" in Reader((tmp_path / "named.html").read_text()).summary["columns"]
    for wrong, why in (
        ("--since 9", "the log has the entries 1 to 3"),
        ("--metadata wards.csv", "which column holds the sample ids"),
        ("--metadata wards.csv --metadata-id who --metadata-columns x", "no column 'x'"),
        ("--metadata-id who", "say something about --metadata"),
    ):
        code, _, said = run(f"report p.vf {wrong}")
        assert (code, why in said) == (1, True), said
