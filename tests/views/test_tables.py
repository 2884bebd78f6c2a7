"""The table of scores: as HTML, as text and as Markdown, for every experiment."""

from pathlib import Path

import pytest

from cdlm_lab.explorer.rank_figures import pairs_in_words
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.runs.report import read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.views import tables
from cdlm_lab.views.score_tables import score_table
from cdlm_lab.views.tables import PER_CENT, PERPLEXITY, Cell, Heading, SystemRow, measured, table_of

PAPER = Heading(name="S2ORC", below="paper: F1", published=True)
HEADINGS = (Heading(name="system", is_text=True), Heading(name="F1"), PAPER)
OURS = Cell(text="71.6", below="± 1.2 [70.0, 73.1]", source="runs/a")
MEASURED = (Cell(text="CDLM"), OURS, Cell(text="96.5", published=True))
MISSING = (Cell(text="Longformer"), Cell(text="not run", missing=True), Cell())
BOUNDS = {"low": 0.7, "high": 0.731, "deviation": 0.012, "seeds": 3}
SCORE = Score(metric="f1", value=0.7157, p=0.0004, against="longformer", **BOUNDS)


def table(*rows: tuple[Cell, ...], **more) -> tables.ScoreTable:
    return tables.ScoreTable(caption=more.pop("caption", ""), columns=HEADINGS, rows=rows, **more)


def row(system: str, published: bool = False, **scores: float | Score) -> SystemRow:
    given = {
        name: value if isinstance(value, Score) else Score(system=system, metric=name, value=value)
        for name, value in scores.items()
    }
    return SystemRow(system=system, label=system.upper(), scores=given, published=published)


def texts(shown: tables.ScoreTable) -> list[list[str]]:
    return [[cell.text for cell in cells] for cells in shown.rows]


# ---- a table ----


def test_markdown_has_numbers_on_the_right_and_the_papers_in_italics():
    assert table(MEASURED, MISSING).markdown().split("\n") == [
        "| system | F1 | *S2ORC: paper: F1* |",
        "|---|---:|---:|",
        "| CDLM | 71.6 ± 1.2 [70.0, 73.1] | *96.5* |",
        "| Longformer | *not run* |  |",
    ]


def test_text_has_columns_and_all_that_stands_around_them():
    shown = table(MEASURED, MISSING, caption="Matching", note="In per cent.", sources=["From runs/a\x1b"])
    assert shown.text().split("\n") == [
        "Matching",
        "system                           F1  S2ORC: paper: F1",
        "CDLM        71.6 ± 1.2 [70.0, 73.1]              96.5",
        "Longformer                  not run",
        "In per cent.",
        "From runs/a\u241b",
    ]
    assert shown._repr_mimebundle_() == {"text/html": shown.html(), "text/plain": shown.text()}


@pytest.mark.parametrize(("text", "expected"), [
    ("IE_k on top 2", "IE_k on top 2"),
    ("_x_ and *y*", r"\_x\_ and \*y\*"),
    ("a|b", r"a\|b"),
    ("<script>", r"\<script>"),
    ("p < 0.001 [1, 2]", "p < 0.001 [1, 2]"),
    ("[a](javascript:b)", r"\[a](javascript:b)"),
    ("`x`\nnext", r"\`x\` next"),
    ("back\\slash", r"back\\slash"),
    ("turn\u202ethis", "turn\u2039U+202E\u203athis"),
])  # fmt: skip
def test_markdown_of_text_has_no_markup_in_it(text: str, expected: str):
    assert tables.markdown_text(text) == expected


def test_html_says_where_numbers_are_from_and_escapes_everything():
    evil = Cell(text="<b>x</b>", below="<i>", source='"><script>')
    html = table(MEASURED, (evil, evil, evil), caption="<u>", note="<s>", sources=["<q>"]).html()
    assert 'title="runs/a"' in html
    for tag in ("<b>x", "<i>", "<script", "<u>", "<s>", "<q>"):
        assert tag not in html
    assert "&lt;q&gt;" in html
    assert "<b>71.6</b>" in table((Cell(text="a"), Cell(text="71.6", best=True), Cell())).html()
    html = table(MEASURED, MISSING).html()
    for text in ("96.5", "not run"):
        assert "opacity" in html[html.index(text) - 60 : html.index(text)]
    assert "opacity" not in html[html.index("71.6") - 40 : html.index("71.6")]


def test_html_is_text_in_a_log():
    shown = tables.html_table(
        ["name", ""], [["<bdi>a</bdi>", "1<sub>0</sub>"], ["<div>b &lt;i&gt;</div>", "22"]]
    )
    assert repr(shown) == "name\na      10\nb <i>  22"
    assert "<td" in shown.data
    view = tables.Shown(
        "<style>p{}</style><div>one <b>word</b></div><p title='x'>two</p>" + "<div>line</div>" * 50
    )
    assert repr(view).splitlines()[:3] == ["one word", "two", "line"]
    assert repr(view).endswith("\n(12 lines more)")


def test_a_table_has_rows():
    with pytest.raises(ValueError, match="x: there is no row to show"):
        table(caption="x")


# ---- cells ----


def test_all_that_belongs_to_a_score_stands_in_its_cell():
    cell = tables.number_cell(SCORE, PER_CENT, with_p=True, against="Longformer")
    assert (cell.text, cell.below, cell.test) == ("71.6", "± 1.2 [70.0, 73.1]", "(p < 0.001 to Longformer)")
    tested = Score(metric="f1", value=0.5, p=0.0401)
    assert tables.number_cell(tested, PER_CENT, with_p=True).test == "(p = 0.040)"
    assert tables.number_cell(SCORE, PER_CENT).below == "± 1.2 [70.0, 73.1]"
    assert tables.number_cell(None, PER_CENT) == Cell()
    assert tables.number_cell(Score(metric="p", value=455.2, deviation=3.14159), PERPLEXITY).below == "± 3.1"
    small = Score(metric="mrr", value=0.33, deviation=0.0221)
    assert tables.number_cell(small, tables.THOUSANDTHS).below == "± 0.022"


@pytest.mark.parametrize(("values", "written"), [
    ((4.835, 4.69, 4.98), ["4.83", "4.69", "4.98"]),
    ((100.6, 94.13, 107.6), ["100.6", "94.1", "107.6"]),
    ((1234.5, 900.4), ["1,234", "900"]),
    ((float("inf"), 2.0), ["inf", "2"]),
])  # fmt: skip
def test_bounds_of_a_perplexity_are_written_as_it_is(values: tuple[float, ...], written: list[str]):
    assert PERPLEXITY.write(values) == written


@pytest.mark.parametrize(("value", "form"), [(1.5, PER_CENT), (-0.1, tables.THOUSANDTHS), (0.9, PERPLEXITY)])
def test_a_value_outside_its_scale_is_refused(value: float, form):
    with pytest.raises(ValueError, match=rf"cdlm: f1 is {value}; it must lie in \["):
        tables.number_cell(Score(system="cdlm", metric="f1", value=value), form)


# ---- rows and columns ----


def test_rows_are_means_of_a_group_with_those_on_dev_beside_them():
    scores = [
        Score(system="a", split="test", group="all", metric="map", value=0.5),
        Score(system="a", split="dev", group="all", metric="map", value=0.25),
        Score(system="a", split="test", group="all", metric="map", value=0.75, seed=1),
        Score(system="b", split="test", group="all", metric="map", value=0.1),
        Score(system="b", split="test", group="best", metric="map", value=0.2),
        Score(metric="seconds", value=3),
    ]
    first, second = tables.system_rows(scores, group="best", labels={"b": "B", "a": "A", "c": "C"})
    assert (first.label, first.scores["map"].value, second.scores["map"].value) == ("B", 0.2, 0.5)
    assert second.scores["dev map"].value == 0.25
    assert [one.label for one in tables.system_rows(scores, group="all")] == ["a", "b"]
    assert "dev map" not in tables.system_rows(scores, split="dev", group="all")[0].scores


def test_a_row_without_scores_was_not_run_unless_only_the_paper_has_it():
    cells = {"a": "1", "b": "2", "c": "3"}
    paper = tables.Column(
        heading=Heading(name="paper", published=True), cell=lambda one, _: Cell(text=cells[one.system])
    )
    rows = [row("a", f1=SCORE), row("b"), row("c", published=True)]
    columns = [measured("F1", "f1"), paper]
    shown = table_of(rows, columns, sources={"a": "runs/a"})
    assert texts(shown) == [["A", "71.6", "1"], ["B", "not run", "2"], ["C", "", "3"]]
    (_, f1, of_paper), second, third = shown.rows
    assert (f1.source, of_paper.source) == ("runs/a", "")
    assert second[1].missing
    assert (third[0].published, third[2].published) == (True, True)


def test_the_best_is_bold_with_all_that_are_written_like_it():
    rows = [row("a", f1=0.5001), row("b", f1=0.5), row("c", f1=0.4), row("p", published=True, f1=0.9)]
    best = [cells[1].best for cells in table_of(rows, [measured("F1", "f1")]).rows]
    assert best == [True, True, False, False]
    lowest = table_of([row("a", f1=2.0), row("b", f1=1.5)], [measured("", "f1", PERPLEXITY, lower=True)])
    assert [cells[1].best for cells in lowest.rows] == [False, True]
    assert not table_of([row("a", f1=0.5)], [measured("F1", "f1")]).rows[0][1].best


def test_nothing_is_best_with_nothing_and_one_cluster_has_no_interval():
    rows = [row("a", f1=0.0), row("b", f1=0.0)]
    assert [cells[1].best for cells in table_of(rows, [measured("F1", "f1")]).rows] == [False, False]
    alone = Score(metric="f1", value=0.432, low=0.432, high=0.432, clusters=1)
    assert tables.number_cell(alone, PER_CENT) == Cell(text="43.2")
    assert "Brackets" not in tables.explained([row("a", f1=alone)])


def test_columns_of_p_counts_and_seeds_and_those_that_nothing_stands_in():
    empty = (measured("EM", "em"), tables.seeds())
    shown = table_of([row("a", f1=0.5)], [measured("F1", "f1"), *empty])
    assert [column.name for column in shown.columns] == ["system", "F1"]
    rows = [row("a", f1=Score(metric="f1", value=0.5, p=0.5, against="b")), row("b", f1=0.25)]
    shown = table_of(rows, [measured("F1", "f1", with_p=True), measured("alone", "f1")])
    assert (shown.rows[0][1].test, shown.rows[0][2].test) == ("(p = 0.500 to B)", ""), "of a row by its label"
    score = Score(metric="f1", value=0.5, n=1234, seeds=3, deviation=0.01)
    columns = [tables.seeds(), tables.counted("items", "f1")]
    assert texts(table_of([row("a", f1=score)], columns)) == [["A", "3", "1,234"]]
    trained = SystemRow(system="a", label="A", checkpoint="minilm", scores=row("a", f1=0.0).scores)
    assert texts(table_of([trained], columns)) == [["A", "1"]]
    parts = {f"muc/{part}": value for part, value in (("recall", 0.5), ("precision", 0.25), ("f1", 1 / 3))}
    shown = table_of([row("a", **parts), row("b", **{"muc/f1": 0.5})], [tables.threes("MUC", "muc")])
    assert texts(shown) == [["A", "50.0 / 25.0 / 33.3"], ["B", ""]]


def test_what_stands_in_the_cells_is_explained():
    assert tables.explained([row("a", f1=0.5)]) == ""
    assert tables.explained([row("a", f1=SCORE), row("b", published=True)]) == (
        "Brackets: 95% interval. ±: standard deviation over the seeds, of which the mean is shown. p: "
        "two-sided, corrected for the number of tests (Holm)."
    )
    assert tables.explained([row("a", f1=0.5), row("b", f1=0.5)]) == "Bold: best."


# ---- the papers' numbers ----


def test_every_published_number_stands_once_and_is_a_number():
    numbers = tables.published_numbers()
    assert sum(map(len, numbers.values())) == 559, "two lines of one place would be one"
    assert {paper for paper, _ in numbers} == {"cdlm", "cda", "doc-arc", "mspp", "acci"}
    for table_name, of_table in numbers.items():
        for number in of_table.values():
            assert table_name == ("doc-arc", "5") or 0 <= float(number) <= 100


def test_numbers_of_a_paper_stand_beside_ours():
    of_papers = (("cda", "2"), ("cdlm", "4"))
    form = {"dataset": "AAN", "columns": ("accuracy", "f1"), "decimals": (1, 1)}
    rows = [row("bert-avg"), row("cdlm"), row("mine")]
    dashes = table_of(rows, [tables.published("AAN", *of_papers, **form)])
    assert [cells[1].text for cells in dashes.rows] == ["53.5 / 53.9", "\u2013 / 88.8", ""]
    without = table_of(rows, [tables.published("AAN", *of_papers, **form, gaps=False)])
    assert [cells[1].text for cells in without.rows] == ["53.5 / 53.9", "88.8", ""]
    answers = tables.published(
        "WikiQA", ("mspp", "2"), ("mspp", "7"), dataset="WikiQA", columns=("p_at_1", "map"), deviations=True
    )
    assert texts(table_of([row("mspp-ie")], [answers])) == [["MSPP-IE", "82.7 (3.0) / 88.5"]]


def test_rows_of_a_paper_stand_among_ours():
    rows = tables.published_rows("cdlm", "2", "ECB+ event", labels={"cdlm/documents": "paper: CDLM"})
    shown = table_of([row("a", **{"conll/f1": 0.5}), *rows], [measured("CoNLL", "conll/f1")])
    assert texts(shown) == [["A", "50.0"], ["paper: CDLM", "85.6"]]
    assert shown.rows[1][1].published
    assert len(tables.published_rows("cdlm", "2", "ECB+ entity")) == 4


RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"
# Report, group, a row, the heading of a column and what stands there, and the caption.
SHOWN = """\
storyworld_tiny/perplexity | | CDLM | perplexity | 2.08 | n = 400 clusters, 30,103 masked tokens
ecb_plus_minilm/event_sentences | event | same head word | CoNLL F1 | 77.9 | n = 10 topics, 93,942 pairs
scisumm_minilm/matching | | GRU-HAN + DEEP | AAN | 75.1 / 75.2 | n = 766 pairs in 214 clusters
scisumm_minilm/alignment | released | Random (exact) | S2ORC | 0.3611 / 46.0 / 39.3 / 28.8 | n = 766 pairs
storyworld_tiny/questions | | CDLM | support F1 | 64.2 | n = 300 questions in 120 clusters
jnlpba_minilm/tagging | | Doc-ARC | JNLPBA | 71.17 (0.49) | n = 60 documents of 601,637 words
wikiqa_minilm/answers | reranked | joint IE_k | WikiQA | 24.6 (3.1) / 49.3 / 49.7 | n = 237 questions, 2,341
wikiqa_minilm/answers | all | joint IE_k | WikiQA | 19.7 (1.9) / 39.4 (1.6) / 40.3 (1.8) | n = 237 questions
fm2_minilm/verification | | MSPP IE_k + IE_1 | FEVER | 81.21 (0.24) / 74.39 | n = 1,380 claims in
ecb_plus_minilm/attention | | CDLM | ECB+ | 72.1 / 70.3 / 58.0 / 55.7 | n = 1,000 pairs of each
"""
SHOWN = [tuple(part.strip() for part in line.split("|")) for line in SHOWN.splitlines()]


def test_every_layout_is_tried():
    assert {read_report(RESULTS / f"{one[0]}.json").name for one in SHOWN} == LAYOUTS.keys()


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown[0])
def test_ours_stand_beside_theirs(shown: list[str]):
    file, group, system, heading, text, caption = shown
    report = read_report(RESULTS / f"{file}.json")
    table = score_table(report, LAYOUTS[report.name], group=group, caption="Mine")
    column = [one.name for one in table.columns].index(heading)
    (row,) = (row for row in table.rows if row[0].text == system)
    assert row[column].text == text
    assert table.caption.startswith(f"Mine, {caption}")
    assert "Brackets: 95% interval." in table.note or group == "released"
    has_p = any(cell.test for row in table.rows for cell in row)
    assert (" p: " in f" {table.note}") == has_p, "p is explained where there is one"


def test_systems_have_labels_and_an_order():
    report = read_report(RESULTS / "scisumm_minilm" / "matching.json")
    layout = LAYOUTS[report.name]
    table = score_table(report, layout, labels={"gru-han": "GRU", "bert-han": "BERT", "mine": "not measured"})
    assert [row[0] for row in table.rows] == [Cell(text="GRU"), Cell(text="BERT")]
    assert table.caption.startswith("n = 766 pairs")
    with pytest.raises(ValueError, match="there is no row to show"):
        score_table(report, layout, group="else")
    report = read_report(RESULTS / "fm2_minilm" / "verification.json")
    table = score_table(report, LAYOUTS[report.name], split="dev")
    headings = ["system", "label accuracy", "seeds"]
    assert [column.name for column in table.columns] == headings, "no numbers of papers beside dev"
    assert table.caption == "n = 205 claims in 41 groups"


@pytest.mark.parametrize(
    ("counts", "words"),
    [([1000, 1000], "1,000 pairs"), ([990, 1000], "990\u20131,000 pairs"), ([1], "1 pair"), ([], "no pairs")],
)
def test_numbers_of_pairs(counts: list[int], words: str):
    assert pairs_in_words(counts) == words
