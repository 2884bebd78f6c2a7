"""What all views, pages and figures promise: texts are text, nothing runs, nothing is loaded."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from shown_reads import HOSTILE, QUESTION, SHOWN, claim, plain, question, ranking, sentence, tags_of, word

from cdlm_lab.data.records import DocumentPair, PairDocument, Paragraph
from cdlm_lab.explorer.rank_figures import head_maps, rank_distributions
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference import view as coreference
from cdlm_lab.tasks.coreference.clustering import merge_tree
from cdlm_lab.tasks.joint import answers_view as rankings
from cdlm_lab.tasks.joint import claims_view as verdicts
from cdlm_lab.tasks.joint.paragraphs_view import example_html, pretraining_losses_figure
from cdlm_lab.tasks.matching import view as aligned
from cdlm_lab.tasks.multihop import view as questions
from cdlm_lab.tasks.pretraining.view import perplexity_figure
from cdlm_lab.tasks.tagging import view as tagged
from cdlm_lab.views import packed
from cdlm_lab.views.html import ShownMention, gold_chip, sentence_html
from cdlm_lab.views.live_curve import LiveCurve
from cdlm_lab.views.tables import SystemRow

OUR_TAGS = "div|span|bdi|b|i|u|s|br|sub|small|mark|style|img|details|summary|table|thead|tbody|tr|th|td|svg"
OUR_TAGS = re.compile(f"{OUR_TAGS}|path|text|circle|label|input")
MENTION = ShownMention(text=HOSTILE, before=HOSTILE, after=HOSTILE, document=HOSTILE, gold=HOSTILE)
LONG_NAME, OTHER = 3 * HOSTILE, HOSTILE + "2"
FLAGS = np.array([False, True, False])
TOKENS = {"tokens": [HOSTILE] * 3, "replacement": [None, LONG_NAME, None], "global_": FLAGS}
TOKENS |= {"special": np.zeros(3, bool), "starts_word": ~FLAGS, "cross_document": FLAGS}
TOKENS |= {"mask_token": HOSTILE}
READ_QUESTION = replace(
    QUESTION,
    **dict.fromkeys(("id", "question", "kind", "answer", "gold_answer"), HOSTILE),
    paragraphs=(Paragraph(title=HOSTILE, sentences=(HOSTILE, HOSTILE)),),
    place=(0, "body", 0, len(HOSTILE)),
    sentence_probabilities={(0, 0): 0.5},
    paragraph_probabilities=(0.5,),
    **dict.fromkeys(("supporting", "gold_supporting"), frozenset({(0, 0)})),
)
READ_RANKING = rankings.ReadRanking(
    id=HOSTILE,
    question=HOSTILE,
    candidates=(HOSTILE, HOSTILE),
    right=(True, False),
    scores={HOSTILE: (1.0, None), OTHER: (0.0, 1.0)},
)
TEXTS = dict.fromkeys(("id", "claim", "gold"), HOSTILE) | {"evidence": (HOSTILE, HOSTILE)}
READ_CLAIM = verdicts.ReadClaim(**TEXTS, probabilities={HOSTILE: 1.0}, shares=(0.5, 0.5))
WHERE = tagged.ReadOccurrence(words=(HOSTILE, "a", HOSTILE), place=2, distance=3, weight=1.0, sentence=2)
READ_WORD = tagged.ReadWord(
    word=HOSTILE, gold=f"B-{HOSTILE}", predicted=f"I-{HOSTILE}1", occurrences=(WHERE,)
)
READ_SENTENCE = tagged.ReadSentence(document=HOSTILE, number=12, words=(READ_WORD, READ_WORD))


def aligned_html(columns):
    document = PairDocument(id=HOSTILE, sentences=(HOSTILE,))
    pair = DocumentPair(id="p", first=document, second=document, related=True, aligned=None, cluster="c")
    column = aligned.AlignedColumn(name=HOSTILE, weights=[1.0])
    return aligned.pair_html(pair, [column] * columns)


def clusters_html():
    mixed = (MENTION, MENTION, replace(MENTION, gold="B" + HOSTILE))
    alone = coreference.ShownCluster(name="2" + HOSTILE, mentions=(MENTION,))
    return coreference.clusters_html([coreference.ShownCluster(name=HOSTILE, mentions=mixed), alone])


def errors_html():
    pair = coreference.PairError(first=MENTION, second=MENTION, score=0.5)
    return coreference.errors_html([pair], [], threshold=0.5)


def packed_html():
    losses = [packed.DocumentLoss(title=HOSTILE, cut=1, reason=HOSTILE)]
    more = {"document": np.zeros(3, int), "documents": losses, "title": HOSTILE, "memory_bytes": 1e9}
    return packed.PackedPreview(**TOKENS, **more)._repr_html_()


def paragraph_html():
    sentences = [(HOSTILE, HOSTILE, None, 0, None)]
    return example_html(packed.MarkedTokens(**TOKENS), np.zeros(3, int), sentences, title=HOSTILE)


def curve_html():
    live = LiveCurve(title=HOSTILE, write=lambda line: None, show=lambda html: None)
    live({"step": 1, "loss": 1.0})
    return live.html(final=False)


def question_at(place):
    return questions.question_html(replace(READ_QUESTION, place=place))


# View -> (its HTML, how often the hostile text stands in it, None = more than once).
VIEWS = {
    "question": (questions.question_html(READ_QUESTION), 9),
    "question, in a title": (question_at((0, "title", 3, 9)), 9),
    "question, across marks": (question_at((0, "body", 5, 12)), 9),
    "question, nowhere": (question_at(None), 8),
    "ranking": (rankings.ranking_html(READ_RANKING, system=HOSTILE, beside=OTHER), 10),
    "claim": (verdicts.verdict_html(READ_CLAIM, shares=HOSTILE), 7),
    # document; each word, two gold labels, one predicted span; heading: word, two tags; two in the list; five
    # in that of the other word, which opens when it is clicked
    "tagged": (tagged.tagged_sentence_html(READ_SENTENCE, labels=()), 16),
    "aligned": (aligned_html(1), 5),
    "several aligned": (aligned_html(2), 7),
    "clusters": (clusters_html(), None),
    "errors": (errors_html(), None),
    "packed": (packed_html(), None),
    "paragraph example": (paragraph_html(), None),
    "curve": (curve_html(), 1),
    "mention": (sentence_html(MENTION, "#123456"), 4),
    "gold": (gold_chip(HOSTILE, "#123456") + gold_chip(LONG_NAME, "#123456"), None),
}


@pytest.mark.parametrize("name", VIEWS)
def test_texts_are_text_in_views(name):
    html, times = VIEWS[name]
    assert "<script" not in html
    assert "\u202e" not in html
    assert not re.search(r"<[^>]*\son\w+=", html)
    assert all(map(OUR_TAGS.fullmatch, tags_of(html)))
    elements = re.sub(r"<(svg|style).*?</\1>|<(?:img|input)[^>]*>|<br>", "", html, flags=re.DOTALL)
    opened, closed = (sorted(re.findall(rf"<{sign}([a-z]+)", elements)) for sign in ("", "/"))
    assert opened == closed, "tags are balanced"
    attributes = re.findall(r'\s([a-z-]+)="[^"]*"', " ".join(re.findall(r"<[a-z][^>]*>", elements)))
    assert set(attributes) <= {"class", "style", "dir", "title"}
    count = plain(html).count(plain(SHOWN))
    assert count == times or (times is None and count), count


JOINT = {"system": "joint IE_k", "beside": "pairwise"}
PAGES = {
    "question": (questions.questions_page, READ_QUESTION, {}),
    "ranking": (rankings.rankings_page, READ_RANKING, {"system": HOSTILE, "beside": OTHER}),
    "claim": (verdicts.verdicts_page, READ_CLAIM, {"shares": HOSTILE}),
    "tagged": (tagged.tagged_page, READ_SENTENCE, {}),
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
CLAIMS = [claim(0, "refuted", gold) for gold in ("refuted", "supported", None)]
SENTENCES = [sentence(0, word("a", gold, "B-X")) for gold in ("B-X", "O", None)]
MANY = "4 questions; joint IE_k right on 1 of 3; pairwise right on 2 of 3; 1 repaired; 2 broken"


@pytest.mark.parametrize(
    ("name", "reads", "more", "note"),
    [
        ("question", answered(False, True, None), {}, "3 questions; 1 of 2 answers right"),
        ("question", answered(None), {}, "1 question"),
        ("claim", CLAIMS, {"shares": ""}, "3 claims; 1 of 2 verdicts right"),
        ("claim", CLAIMS[2:], {"shares": ""}, "1 claim"),
        ("tagged", SENTENCES, {}, "3 sentences; 1 of 2 right"),
        ("tagged", SENTENCES[2:], {}, "1 sentence"),
        ("ranking", ranked(BETTER, WORSE, WORSE, UNKNOWN), JOINT, MANY),
        ("ranking", ranked(BETTER), JOINT | {"system": "pairwise"}, "1 question; pairwise right on 0 of 1"),
        ("ranking", ranked(UNKNOWN), JOINT | {"system": "pairwise"}, "1 question"),
    ],
)
def test_a_page_says_how_many_are_right(name, reads, more, note):
    assert f">{note}<" in PAGES[name][0](reads, title="T", **more)


GRID = np.random.default_rng(0)
RANKS = {HOSTILE: {"positive/event": 100 * GRID.random(30), "negative/event": 100 * GRID.random(30)}}
PERPLEXITY = Score(system=HOSTILE, metric="perplexity", value=4.0, low=3.5, high=5.0, n=100)
LOSSES = [{"step": n, "loss_mlm": 2.0, "loss_mspp": 1.0} for n in (1, 2)]
PLACED = SimpleNamespace(accuracy=[0.5, 0.25], always_wrong=[0.9, 0.8])
LATENCY = rankings.Latency(system=HOSTILE, seconds=0.05, fastest=0.04, slowest=0.06, runs=3)
GAIN = {"words": HOSTILE, "difference": 0.0312, "low": 0.01, "high": 0.05, "occurrences": 5321}
SHARE = {"start": 0, "stop": 100, "words": 3, "share": 0.5}
NEAR = {"bucket": 0, "quantiles": [0.1, 0.2, 0.4, 0.6, 0.9], "mean": 0.45, "count": 1200}
SWEEP = [{"occurrences": k, "seed": 0, "f1": 0.5} for k in (2, 5)]
BAR = SystemRow(system=f"a/{HOSTILE}", label=HOSTILE, scores={"mrr": Score(metric="mrr", value=0.5)})
TREE = {"tree": merge_tree(np.array([[1, 0.5], [0.5, 1]])), "mentions": [MENTION, MENTION], "threshold": 0.4}
OWN = "a title of its own"
FIGURES = {
    "perplexity": (perplexity_figure([PERPLEXITY], title=HOSTILE), HOSTILE),
    "ranks": (rank_distributions(RANKS, title=HOSTILE), HOSTILE),
    "heads": (head_maps({HOSTILE: np.array([[np.nan, 1]])}, title=HOSTILE), HOSTILE),
    "dendrogram": (coreference.dendrogram_figure(**TREE, title=HOSTILE), HOSTILE),
    "weights": (tagged.weights_by_distance_figure([NEAR], buckets=[HOSTILE], title=HOSTILE), HOSTILE),
    "gain": (tagged.gain_by_tf_idf_figure([GAIN], system=HOSTILE, other=HOSTILE), HOSTILE),
    "losses": (pretraining_losses_figure(LOSSES, right=0.2), OWN),
    "alignment": (aligned.alignment_figure([BAR, replace(BAR, system="random")]), None),
    "accuracy": (rankings.accuracy_by_place_figure({HOSTILE: PLACED}), OWN),
    "spread": (rankings.score_spread_figure({HOSTILE: [0.5]}), OWN),
    "latency": (rankings.latency_figure([LATENCY], against=HOSTILE), OWN),
    "shares": (tagged.shares_by_tf_idf_figure(HOSTILE, [SHARE]), OWN),
    "sweep": (tagged.sweep_figure(HOSTILE, SWEEP), OWN),
}


@pytest.mark.parametrize("name", FIGURES)
def test_texts_are_no_markup_in_figures_and_figures_have_one_look(name):
    figure, title = FIGURES[name]
    seen = {key: value for key, value in figure.to_dict().items() if key != "template"}
    seen["layout"].pop("template")
    assert "<script" not in str(seen)
    assert "202e" not in str(seen), "written as an escape: U+202E is no printable character"
    assert bool(figure.layout.title.text) == bool(title)
    if title == HOSTILE:
        assert "&lt;script&gt;x&lt;/script&gt;\"'&amp;\u2039U+202E\u203a" in figure.layout.title.text
    look = figure.layout.template.layout
    assert look.paper_bgcolor == look.plot_bgcolor == "rgba(0,0,0,0)"
    assert look.hovermode == "closest"
    assert len(figure.to_json()) < 20_000
