"""What all views, pages and figures promise: texts are text whatever they hold, nothing runs, nothing is
loaded."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from shown_reads import HOSTILE, QUESTION, SHOWN, claim, plain, question, ranking, sentence, tags_of, word

from cdlm_lab.analysis.tf_idf import QuantileShare
from cdlm_lab.clustering import merge_tree
from cdlm_lab.data.questions import Paragraph
from cdlm_lab.scores import Score
from cdlm_lab.widgets.aligned import AlignedColumn, alignment_figure, compared_alignments_html
from cdlm_lab.widgets.charts import (
    TaskLosses,
    head_maps,
    perplexity_figure,
    pretraining_losses_figure,
    rank_distributions,
)
from cdlm_lab.widgets.coreference import (
    CoreferenceErrors,
    PairError,
    ShownCluster,
    clusters_html,
    dendrogram_figure,
    errors_html,
)
from cdlm_lab.widgets.html import ShownMention, gold_chip, sentence_html
from cdlm_lab.widgets.live_curve import LiveCurve
from cdlm_lab.widgets.packed import (
    DocumentLoss,
    MarkedTokens,
    PackedPreview,
    ParagraphExampleView,
    TaskSentence,
)
from cdlm_lab.widgets.questions import question_html, questions_page
from cdlm_lab.widgets.rankings import (
    Latency,
    ReadRanking,
    accuracy_by_place_figure,
    latency_figure,
    ranking_html,
    rankings_page,
    score_spread_figure,
)
from cdlm_lab.widgets.tables import SystemRow
from cdlm_lab.widgets.tagged import (
    DistanceWeights,
    ReadOccurrence,
    ReadSentence,
    ReadWord,
    SweepPoint,
    WordGain,
    gain_by_tf_idf_figure,
    shares_by_tf_idf_figure,
    sweep_figure,
    tagged_page,
    tagged_sentence_html,
    weights_by_distance_figure,
)
from cdlm_lab.widgets.verdicts import ReadClaim, verdict_html, verdicts_page

OUR_TAGS = {*("div", "span", "bdi", "b", "i", "u", "s", "br", "sub", "small", "mark", "style", "img")}
OUR_TAGS |= {
    *("details", "summary", "table", "thead", "tbody", "tr", "th", "td", "svg", "path", "text", "circle")
}
MENTION = ShownMention(text=HOSTILE, before=HOSTILE, after=HOSTILE, document=HOSTILE, gold=HOSTILE)
LONG_NAME = 3 * HOSTILE
FLAGS = np.array([False, True, False])
TOKENS = {
    "tokens": [HOSTILE, HOSTILE, HOSTILE],
    "masked": FLAGS,
    "replacement": [None, LONG_NAME, None],
    "global_": FLAGS,
    "special": FLAGS[::-1] & FLAGS[0],
    "mask_token": HOSTILE,
}
HOSTILE_QUESTION = replace(
    QUESTION,
    id=HOSTILE,
    question=HOSTILE,
    kind=HOSTILE,
    answer=HOSTILE,
    gold_answer=HOSTILE,
    paragraphs=(Paragraph(title=HOSTILE, sentences=(HOSTILE, HOSTILE)),),
    place=(0, "body", 0, len(HOSTILE)),
    sentence_probabilities={(0, 0): 1.0},
    paragraph_probabilities=(1.0,),
)
HOSTILE_RANKING = ReadRanking(
    id=HOSTILE,
    question=HOSTILE,
    candidates=(HOSTILE, HOSTILE),
    right=(True, False),
    scores={HOSTILE: (1.0, None), HOSTILE + "2": (0.0, 1.0)},
)
HOSTILE_CLAIM = ReadClaim(
    id=HOSTILE,
    claim=HOSTILE,
    evidence=(HOSTILE, HOSTILE),
    probabilities={HOSTILE: 1.0},
    shares=(0.5, 0.5),
    gold=HOSTILE,
)
WHERE = ReadOccurrence(words=(HOSTILE, "a", HOSTILE), place=2, distance=3, weight=1.0, sentence=2)
HOSTILE_WORD = ReadWord(word=HOSTILE, gold=f"B-{HOSTILE}", predicted=f"I-{HOSTILE}1", occurrences=(WHERE,))
HOSTILE_SENTENCE = ReadSentence(document=HOSTILE, number=12, words=(HOSTILE_WORD, HOSTILE_WORD))


def aligned(columns):
    more = {"title": HOSTILE, "other_title": HOSTILE, "other_sentences": [HOSTILE]}
    return compared_alignments_html([AlignedColumn(name=HOSTILE, weights=[1.0])] * columns, [HOSTILE], **more)


def clusters():
    other = replace(MENTION, gold="B" + HOSTILE)
    several = ShownCluster(name=HOSTILE, mentions=(MENTION, MENTION, other))
    return clusters_html([several, ShownCluster(name="2" + HOSTILE, mentions=(MENTION,))])


def errors():
    pair = PairError(first=MENTION, second=MENTION, score=0.5)
    return errors_html(CoreferenceErrors(merged=(pair,), split=(), threshold=0.5))


def packed():
    losses = [DocumentLoss(title=HOSTILE, kept=3, cut=1, reason=HOSTILE)]
    return PackedPreview(**TOKENS, document=np.zeros(3, int), documents=losses, title=HOSTILE)._repr_html_()


def paragraphs():
    marked = MarkedTokens(**TOKENS, starts_word=~FLAGS, cross_document=FLAGS)
    sentences = [TaskSentence(source=HOSTILE, document=HOSTILE, label=None)]
    return ParagraphExampleView(
        marked=marked, sentence=np.zeros(3, int), sentences=sentences, title=HOSTILE
    )._repr_html_()


def curve():
    live = LiveCurve(title=HOSTILE, write=lambda line: None, show=lambda html: None)
    live({"step": 1, "loss": 1.0})
    return live.html(final=False)


# View -> (its HTML, how often the hostile text stands in it).
VIEWS = {
    "question": (question_html(HOSTILE_QUESTION), 9),
    "question, in a title": (question_html(replace(HOSTILE_QUESTION, place=(0, "title", 3, 9))), 9),
    "question, across marks": (question_html(replace(HOSTILE_QUESTION, place=(0, "body", 5, 12))), 9),
    "question, nowhere": (question_html(replace(HOSTILE_QUESTION, place=None)), 8),
    "ranking": (ranking_html(HOSTILE_RANKING, system=HOSTILE, beside=HOSTILE + "2"), 10),
    "claim": (verdict_html(HOSTILE_CLAIM, shares=HOSTILE), 7),
    # document; each word, two gold labels, one predicted span; heading: word, two tags; two in the list
    "tagged": (tagged_sentence_html(HOSTILE_SENTENCE), 11),
    "aligned": (aligned(1), 5),
    "several aligned": (aligned(2), 7),
    "clusters": (clusters(), None),
    "errors": (errors(), None),
    "packed": (packed(), None),
    "paragraph example": (paragraphs(), None),
    "curve": (curve(), 1),
    "mention": (sentence_html(MENTION, "#123456"), 4),
    "gold": (gold_chip(HOSTILE, "#123456") + gold_chip(LONG_NAME, "#123456"), None),
}


@pytest.mark.parametrize("name", VIEWS)
def test_texts_are_text_in_views(name):
    html, times = VIEWS[name]
    assert "<script" not in html
    assert "\u202e" not in html
    assert not re.search(r"<[^>]*\son\w+=", html)
    assert tags_of(html) <= OUR_TAGS
    count = plain(html).count(plain(SHOWN))
    assert count == times or (times is None and count), count


PAGES = {
    "question": (questions_page, HOSTILE_QUESTION, {}),
    "ranking": (rankings_page, HOSTILE_RANKING, {"system": HOSTILE, "beside": HOSTILE + "2"}),
    "claim": (verdicts_page, HOSTILE_CLAIM, {"shares": HOSTILE}),
    "tagged": (tagged_page, HOSTILE_SENTENCE, {}),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_nothing_and_loads_nothing(name):
    page_of, read, more = PAGES[name]
    page = page_of([read, read], title=HOSTILE, **more)
    assert page.startswith("<!doctype html>")
    assert page.endswith("</body></html>")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "color-scheme:light dark" in page
    assert page.count(f'<div class="cdlm-view cdlm-{name}"') == 2
    assert not re.search(r"https?:|<link|<img|<script|<[^>]*\son\w+=", page)
    assert page.count(f"<title>{SHOWN}</title>") == 1
    assert page.count(f"<bdi>{SHOWN}</bdi></div>") >= 1, "the title stands above too"
    noun = {"ranking": "question", "tagged": "sentence"}.get(name, name)
    assert f"2 {noun}s" in page
    assert re.search(f">1 {noun}[<;]", page_of([read], title="One", **more))
    with pytest.raises(ValueError, match=f"there is no {noun} to show: reads is empty"):
        page_of([], title="None", **more)


def answered(*rights):
    return [question(number, "", answer=right, support=None) for number, right in enumerate(rights)]


def ranked(*scores):
    return [ranking(0, 2, pairwise=pairwise, joint=joint, known=known) for pairwise, joint, known in scores]


BETTER, WORSE, UNKNOWN = (-1, 1, True), (1, -1, True), (1, 1, False)
JOINT = {"system": "joint IE_k", "beside": "pairwise"}


@pytest.mark.parametrize(
    ("page_of", "reads", "more", "note"),
    [
        (questions_page, answered(False, True, None), {}, "3 questions; 1 of 2 answers right"),
        (questions_page, answered(None), {}, "1 question"),
        (
            verdicts_page,
            [claim(0, "refuted", gold) for gold in ("refuted", "supported", None)],
            {},
            "3 claims; 1 of 2 verdicts right",
        ),
        (verdicts_page, [claim(0, "refuted", None)], {}, "1 claim"),
        (
            tagged_page,
            [sentence(0, word("a", gold, "B-X")) for gold in ("B-X", "O", None)],
            {},
            "3 sentences; 1 of 2 right",
        ),
        (tagged_page, [sentence(0, word("a", None, "O"))], {}, "1 sentence"),
        (
            rankings_page,
            ranked(BETTER, WORSE, WORSE, UNKNOWN),
            JOINT,
            "4 questions; joint IE_k right on 1 of 3; pairwise right on 2 of 3; 1 repaired; 2 broken",
        ),
        (rankings_page, ranked(BETTER), {"system": "joint IE_k"}, "1 question; joint IE_k right on 1 of 1"),
        (rankings_page, ranked(UNKNOWN), JOINT | {"system": "pairwise"}, "1 question"),
    ],
)
def test_a_page_says_how_many_are_right(page_of, reads, more, note):
    assert f">{note}<" in page_of(reads, title="T", **more)


GRID = np.random.default_rng(0)
RANKS = {HOSTILE: {"positive/event": 100 * GRID.random(30), "negative/event": 100 * GRID.random(30)}}
PERPLEXITY = Score(system=HOSTILE, metric="perplexity", value=4.0, low=3.5, high=5.0, n=100)
LOSSES = TaskLosses(steps=[1, 2], losses=[2.0, 1.0])
PLACED = SimpleNamespace(accuracy=[0.5, 0.25], always_wrong=[0.9, 0.8])
LATENCY = Latency(system=HOSTILE, seconds=0.05, fastest=0.04, slowest=0.06, runs=3)
GAIN = WordGain(stratum=HOSTILE, gain=0.0312, low=0.01, high=0.05, words=5321)
SHARE = QuantileShare(start=0, stop=100, lowest=0.1, highest=0.2, words=3, share=0.5)
NEAR = DistanceWeights(bucket=HOSTILE, quantiles=(0.1, 0.2, 0.4, 0.6, 0.9), mean=0.45, count=1200)
POINT = SweepPoint(k=2, f1=0.5, deviation=0.01, seeds=3)
ALIGNED = SystemRow(system=f"a/{HOSTILE}", label=HOSTILE, scores={"mrr": Score(metric="mrr", value=0.5)})
TREE = merge_tree(np.array([[1, 0.5], [0.5, 1]]))
FIGURES = {
    "perplexity": lambda **more: perplexity_figure([PERPLEXITY], **more),
    "losses": lambda **more: pretraining_losses_figure(LOSSES, LOSSES, **more),
    "ranks": lambda **more: rank_distributions(RANKS, **more),
    "heads": lambda **more: head_maps({HOSTILE: np.array([[np.nan, 1]])}, **more),
    "dendrogram": lambda **more: dendrogram_figure(TREE, [MENTION, MENTION], threshold=0.4, **more),
    "alignment": lambda **more: alignment_figure([ALIGNED, replace(ALIGNED, system="random")], **more),
    "accuracy": lambda **more: accuracy_by_place_figure({HOSTILE: PLACED}, **more),
    "spread": lambda **more: score_spread_figure({HOSTILE: [0.5]}, **more),
    "latency": lambda **more: latency_figure([LATENCY], against=HOSTILE, **more),
    "gain": lambda **more: gain_by_tf_idf_figure({HOSTILE: [GAIN]}, system=HOSTILE, other=HOSTILE, **more),
    "shares": lambda **more: shares_by_tf_idf_figure({HOSTILE: [SHARE]}, **more),
    "weights": lambda **more: weights_by_distance_figure([NEAR], **more),
    "sweep": lambda **more: sweep_figure({HOSTILE: [POINT, replace(POINT, k=5)]}, **more),
}


@pytest.mark.parametrize("name", FIGURES)
def test_texts_are_no_markup_in_figures_and_figures_have_one_look(name):
    figure = FIGURES[name](title=HOSTILE)
    seen = {key: value for key, value in figure.to_dict().items() if key != "template"}
    for trace in seen["data"]:
        trace.pop("legendgroup", None)  # which is not shown
    seen["layout"].pop("template")
    assert "<script" not in str(seen)
    assert "202e" not in str(seen), "written as an escape: U+202E is no printable character"
    assert figure.layout.title.text == "&lt;script&gt;x&lt;/script&gt;\"'&amp;\u2039U+202E\u203a"
    look = figure.layout.template.layout
    assert look.paper_bgcolor == look.plot_bgcolor == "rgba(0,0,0,0)"
    assert look.hovermode == "closest"
    assert len(figure.to_json()) < 20_000


def test_figures_can_be_written_offline(tmp_path):
    FIGURES["losses"]().write_html(tmp_path / "figure.html", include_plotlyjs=True)
    assert "https://cdn" not in (tmp_path / "figure.html").read_text(encoding="utf-8")[-100_000:]
