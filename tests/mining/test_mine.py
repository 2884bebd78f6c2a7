"""From a pile in each form to clusters on one event; what is left out is counted and named."""

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cdlm_lab
from cdlm_lab.batch import command
from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.files import DataError
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.mining.articles import Article, read_pile
from cdlm_lab.mining.clusters import Mined, MineSettings, find_clusters, pairs_among
from cdlm_lab.mining.mine import in_words
from cdlm_lab.mining.parts import find_clusters_in_parts
from cdlm_lab.mining.similarity import compared_words, grams_of, jaccard
from cdlm_lab.mining.view import pile_page, pile_text
from cdlm_lab.parameters import ParameterError

FLOOD = [
    "The river Orme overflowed its banks near Telk on Monday. Three villages were cut off by the flood.",
    "Flood at Telk: the Orme burst its banks, and villages are cut off. Soldiers carry people to the town.",
    "Villages near Telk stay cut off by the flood of the Orme. The army is bringing food by boat.",
]
STRIKE = [
    "Dockers in Norra went on strike on Monday. No ship was unloaded in the harbour, the union said.",
    "The harbour of Norra stands still: its dockers are on strike for higher pay, the union says.",
]
OTHER = "A museum of clocks has opened in Sund. Its oldest clock was built by a blacksmith."


def line(text: str, **more: Any) -> str:
    return json.dumps({"text": text, **more}, ensure_ascii=False)


@pytest.fixture
def pile(tmp_path: Path) -> Path:
    """Two events a year apart, and one article on nothing else."""
    flood = [line(text, id=f"flood {n}", date=f"2018-08-{27 + n}") for n, text in enumerate(FLOOD)]
    strike = [line(text, id=f"strike {n}", date="8/29/19", title="Strike") for n, text in enumerate(STRIKE)]
    lines = [strike[0], *flood, line(OTHER, id="other", date="2018-08-28"), strike[1]]
    file = tmp_path / "pile.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def names(mined: Mined) -> list[list[str]]:
    return [[article.id for article in cluster] for cluster in mined.clusters]


def test_articles_on_one_event_are_a_cluster_that_the_notebooks_read(pile: Path, tmp_path: Path):
    clusters = tmp_path / "clusters.jsonl"
    mined = cdlm_lab.mine(pile, clusters)
    assert names(mined) == [["flood 0", "flood 1", "flood 2"], ["strike 0", "strike 1"]]
    assert mined.labels["other"] == "other"
    assert mined.labels["flood 2"] == "flood 0"
    first = json.loads(clusters.read_text(encoding="utf-8").splitlines()[0])
    assert first["documents"][1] == {"id": "flood 1", "text": FLOOD[1], "date": "2018-08-28"}
    read = {cluster.id for split in ("train", "validation", "test") for cluster in read_all(clusters, split)}
    assert read == {"flood 0", "strike 0"}


def read_all(file: Path, split: str) -> list[Any]:
    try:
        return list(open_corpus(str(file), split=split))
    except DataError:  # no cluster of this split
        return []


def test_the_window_of_days_keeps_equal_words_apart(tmp_path: Path):
    file = tmp_path / "pile.jsonl"
    dated = {FLOOD[0]: "2018-08-01", FLOOD[1]: "2018-08-04", FLOOD[2]: "2018-08-08", FLOOD[0] + " So.": ""}
    file.write_text("\n".join(line(text, date=day) for text, day in dated.items()))
    assert [len(cluster) for cluster in cdlm_lab.mine(file, duplicates=1.0).clusters] == [
        3
    ]  # without a date: near
    assert [len(cluster) for cluster in cdlm_lab.mine(file, duplicates=1.0, days=7).clusters] == [4]
    assert [len(cluster) for cluster in cdlm_lab.mine(file, duplicates=1.0, dates=False).clusters] == [4]


def test_near_duplicates_are_put_aside_and_named(tmp_path: Path):
    file = tmp_path / "pile.jsonl"
    long = " ".join(FLOOD + STRIKE)
    texts = [long, long.replace("Monday", "Tuesday", 1), FLOOD[1], long]
    file.write_text("\n".join(line(text, id=str(n), date="2018-08-29") for n, text in enumerate(texts)))
    mined = cdlm_lab.mine(file)
    assert mined.copies == {"1": "0", "3": "0"}
    assert names(mined) == [["0", "2"]]
    assert mined.labels == dict.fromkeys("0123", "0")
    assert "2 near duplicates" in in_words(mined)


def test_jaccard_of_five_grams_is_counted():
    one, other = (
        Article(id="", title="", text=text, date="", source="")
        for text in ("a1 b1 c1 d1 e1 f1", "a1 b1 c1 d1 e1 g1")
    )
    assert jaccard(grams_of(one), grams_of(other)) == 1 / 3  # abcde of abcde, bcdef, bcdeg
    assert jaccard(grams_of(one), grams_of(one)) == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Orme's U.S. flood", ["the", "orme", "flood"]),
        ("Zürich Zu\u0308rich", ["zürich", "zürich"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("洪水が起きた", ["洪水", "水が", "が起", "起き", "きた"]),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]):
    assert compared_words(text) == expected


@pytest.mark.parametrize(("most", "sizes"), [(0, [3]), (2, [2]), (1, []), (3, [3])])
def test_large_clusters_are_divided_in_order_of_time(most: int, sizes: list[int], pile: Path):
    mined = find_clusters(read_pile(pile), MineSettings(most=most))
    assert [len(cluster) for cluster in mined.clusters if cluster[0].id.startswith("flood")] == sizes
    assert mined.labels["flood 2"] == "flood 0"  # of one event all the same


# ---- forms of a pile ----


def written(folder: Path, form: str) -> Path:
    """Three articles, in a form that can be read."""
    import datasets
    import pandas as pd

    rows = [
        {"id": f"a{n}", "title": "Flood", "text": text, "date": f"2018-08-{27 + n}", "source": "Daily"}
        for n, text in enumerate(FLOOD)
    ]
    path, frame = folder / f"pile.{form}", pd.DataFrame(rows)
    match form:
        case "jsonl":
            path.write_text("\n".join(map(json.dumps, rows)))
        case "csv":
            frame.to_csv(path, index=False)
        case "tsv":
            frame.to_csv(path, index=False, sep="\t")
        case "parquet":
            frame.assign(date=pd.to_datetime(frame.date)).to_parquet(path)
        case "saved":
            datasets.Dataset.from_list(rows).save_to_disk(path)
        case "texts":
            (path / "deep" / ".hidden").mkdir(parents=True)
            for row in rows:
                (path / "deep" / f"{row['date']}-{row['id']}.txt").write_text(row["text"])
            (path / "deep" / ".hidden" / "copy.txt").write_text("An old copy.")
            (path / "notes.md").write_text("No article.")
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv", "parquet", "saved", "texts"])
def test_a_pile_in_each_form_is_one_pile(form: str, tmp_path: Path):
    read = read_pile(written(tmp_path, form))
    assert [article.text for article in read.articles] == FLOOD
    assert [article.day for article in read.articles] == [
        datetime.date(2018, 8, day).toordinal() for day in (27, 28, 29)
    ]
    assert read.faults == {}
    if form != "texts":
        assert [article.id for article in read.articles] == ["a0", "a1", "a2"]
        assert {(article.title, article.source) for article in read.articles} == {("Flood", "Daily")}


def test_what_cannot_be_used_is_named_with_its_line(tmp_path: Path):
    file = tmp_path / "pile.jsonl"
    lines = [
        *(line(FLOOD[0], id="a"), "{no json", "[1]", line(" ", id="empty"), line(FLOOD[1], id="a"), ""),
        *(line(FLOOD[1], date="1397-06-07"), '{"text": null}', line(FLOOD[2], date=None, id=7)),
        '{"text": "half \\ud83d of a pair"}',
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    read = read_pile(file)
    assert [article.id for article in read.articles] == ["a", "pile-4", "7", "pile-7"]
    assert read.faults == {
        "left out: a row that cannot be read": [
            "pile.jsonl:2 (not JSON (Expecting property name enclosed in double quotes))",
            "pile.jsonl:3 (a list where an object belongs)",
        ],
        "left out: without a text": ["pile.jsonl:4 (empty)", "pile.jsonl:8 (pile-5)"],
        "left out: an id that an earlier article has": ["pile.jsonl:5 (a, as pile.jsonl:1)"],
        "kept without its date, which is none of the Gregorian calendar from 1700 to today": [
            "pile.jsonl:7 (1397-06-07)"
        ],
    }
    shown = in_words(find_clusters(read))
    assert "left out: without a text: 2: pile.jsonl:4 (empty), pile.jsonl:8 (pile-5)" in shown


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("pile.jsonl", '{"text": ""}', "pile.jsonl:1: field pile: no article with a text"),
        ("pile.jsonl", "", "the file is empty"),
        ("pile.csv", "a,b\n1,2", "field heading: the heading has no column 'text' (it has a, b)"),
        ("pile.parquet", "no parquet", "no parquet"),
        ("pile.docx", "x", "not a pile that can be read; give a .jsonl"),
        ("missing.jsonl", None, "no such file or folder"),
    ],
)
def test_a_pile_that_cannot_be_read_is_one_line(name: str, content: str | None, part: str, tmp_path: Path):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as error:
        read_pile(tmp_path / name)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"threshold": 0.0}, "threshold is 0.0; it must be above 0"),
        ({"days": -1}, "days is -1; it must be at least 0"),
        ({"thresold": 0.1}, "did you mean 'threshold'?"),
        ({"clusters": "out.txt"}, "it must end in .jsonl"),
        ({"clusters": "nowhere/out.jsonl"}, "there is no folder"),
    ],
)
def test_a_value_that_is_not_possible_is_refused_before_the_pile_is_read(
    given: dict[str, Any], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=part.replace("?", r"\?")):
        cdlm_lab.mine("missing.jsonl", **given)
    assert list(tmp_path.iterdir()) == []


# ---- judged apart, splits, parts ----


def storyworld_pile(folder: Path, count: int = 40) -> Path:
    """Reports of stories, one story a day, every tenth report without a date."""
    start, rows = datetime.date(2018, 1, 1), []
    for number, story in enumerate(stories(seed=3, split="train", stop=count)):
        for document in story.cluster.documents:
            day = (start + datetime.timedelta(days=number)).isoformat()
            date = {} if len(rows) % 10 == 9 else {"date": day}
            rows.append(line(document.text, id=f"{number}/{document.id}", **date))
    file = folder / "stories.jsonl"
    file.write_text("\n".join(rows), encoding="utf-8")
    return file


@pytest.mark.parametrize("parts", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_a_pile_in_parts_has_the_clusters_of_one_run(parts: int, tmp_path: Path):
    pile = storyworld_pile(tmp_path)
    whole = cdlm_lab.mine(pile, tmp_path / "whole.jsonl")
    divided = cdlm_lab.mine(pile, tmp_path / "parts.jsonl", parts=parts, more=["--cores", "2"])
    assert (tmp_path / "parts.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (divided.labels, divided.copies) == (whole.labels, whole.copies)
    assert len(whole.clusters) > 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.jsonl", "stories.jsonl", "whole.jsonl"]


@pytest.mark.slow
def test_an_interrupted_run_in_parts_goes_on_with_them_unless_something_changed(tmp_path: Path):
    pile, clusters = storyworld_pile(tmp_path, 10), tmp_path / "parts.jsonl"
    folder = tmp_path / "parts.jsonl.parts"
    with pytest.raises(ParameterError, match=r"no_such_target.*the same command goes on"):
        cdlm_lab.mine(pile, clusters, parts=2, more=["--cores", "1", "no_such_target"])
    plan = (folder / "plan.json").stat().st_mtime_ns
    for changed in ({}, {"threshold": 0.3}):
        with pytest.raises(ParameterError):
            cdlm_lab.mine(pile, clusters, parts=2, more=["--cores", "1", "no_such_target"], **changed)
        assert ((folder / "plan.json").stat().st_mtime_ns == plan) is (not changed)
    assert not clusters.exists()
    read, form = read_pile(pile), {"folder": folder, "parts": 2, "more": ["--cores", "1"]}
    mined = find_clusters_in_parts(read, MineSettings(), **form)
    assert mined.labels == find_clusters(read).labels
    assert not folder.exists()


def test_what_is_judged_later_is_kept_apart_with_its_dates_and_copies(pile: Path, tmp_path: Path):
    judged = tmp_path / "gold.jsonl"
    gold = [
        {
            "id": "x",
            "split": "test",
            "documents": [{"id": "g", "text": "Of that day.", "date": "2018-08-30"}],
        },
        {
            "id": "y",
            "split": "train",
            "documents": [{"id": "strike 0", "text": STRIKE[0], "date": "2019-08-29"}],
        },
        {"id": "z", "split": "test", "documents": [{"id": "h", "text": STRIKE[1]}]},
    ]
    judged.write_text("\n".join(map(json.dumps, gold)))
    every = cdlm_lab.mine(pile, apart=judged, least=1)
    assert every.labels == {}  # all are of those days
    some = cdlm_lab.mine(pile, apart=judged, apart_splits=["test"], least=1, days=1)
    assert sorted(some.labels) == ["flood 0", "flood 1", "other", "strike 0"][: len(some.labels)]
    assert "strike 1" in some.apart  # a copy of one without a date
    assert "flood 2" in some.apart  # of the day before
    with pytest.raises(DataError, match="no cluster of the split dev"):
        cdlm_lab.mine(pile, apart=judged, apart_splits=["dev"])


def test_clusters_are_split_by_date(tmp_path: Path):
    clusters = tmp_path / "clusters.jsonl"
    mined = cdlm_lab.mine(storyworld_pile(tmp_path), clusters, by_date=True)
    order = [(cluster[0].day is None, cluster[0].day or 0) for cluster in mined.clusters]
    assert order == sorted(order)
    assert list(dict.fromkeys(mined.splits)) == ["train", "validation", "test"]
    assert mined.splits.count("test") == mined.splits.count("validation") == round(0.05 * len(mined.clusters))
    assert len(list(open_corpus(str(clusters), split="test"))) == mined.splits.count("test")


# ---- what a person sees ----


def run(arguments: Sequence[str | Path], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = command.main([*map(str, arguments)])
    return code, *capsys.readouterr()


def test_the_command_writes_clusters_and_a_page_and_prints_them(
    pile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    clusters = tmp_path / "clusters.jsonl"
    code, out, _ = run(["mine", pile, clusters], capsys)
    assert code == 0
    assert "2 clusters with 5 articles: 1 of 2, 1 of 3" in out
    assert "the 2 largest clusters\n  3 articles\n       2018-08-27  The river Orme" in out
    assert "2018  ######" in out
    page = clusters.with_suffix(".html").read_text(encoding="utf-8")
    assert "Strike" in page
    assert "default-src 'none'" in page


def test_the_command_says_what_is_wrong_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, _, err = run(["mine", tmp_path / "missing.jsonl", tmp_path / "out.jsonl"], capsys)
    assert (code, err.count("\n")) == (2, 1)
    (tmp_path / "one.jsonl").write_text(line(OTHER))
    code, _, err = run(["mine", tmp_path / "one.jsonl", tmp_path / "out.jsonl"], capsys)
    assert (code, err) == (2, "there is one article; give more, as clusters are made of several\n")
    assert not (tmp_path / "out.jsonl").exists()


def test_titles_are_shown_as_text(tmp_path: Path):
    file = tmp_path / "pile.jsonl"
    title = "<script>alert(1)</script>\x1b[2J"
    file.write_text("\n".join(line(text, title=title, date="2018-08-29") for text in FLOOD))
    mined = cdlm_lab.mine(file)
    assert "<script>alert" not in pile_page(mined, title="x")
    assert "\x1b" not in pile_text(mined)


def test_a_pile_without_dates_says_what_that_costs(tmp_path: Path):
    file = tmp_path / "pile.jsonl"
    file.write_text("\n".join(map(line, FLOOD)))
    mined = cdlm_lab.mine(file)
    assert names(mined) == [["pile-1", "pile-2", "pile-3"]]
    assert "no article has a date" in in_words(mined)
    file.write_text("\n".join([*map(line, FLOOD), line(OTHER, date="2018-08-29")]))
    assert "no article has a date" not in in_words(cdlm_lab.mine(file))


@pytest.mark.parametrize(("dated", "cosine"), [(2, 0.12), (1, 0.17), (0, 0.22)])
def test_without_dates_articles_must_be_more_similar(dated: int, cosine: float):
    """Two vectors of the given cosine, and of a little less."""
    days = np.array([1.0] * dated + [np.nan] * (2 - dated))
    for least, expected in ((cosine + 0.001, 1), (cosine - 0.001, 0)):
        vectors = csr_matrix([[1.0, 0.0], [least, np.sqrt(1 - least**2)]])
        pairs = pairs_among(vectors, days, range(2), MineSettings())
        assert len(pairs.first) == expected
