"""Every view that shows words or texts, in a real browser: words stand in their reading order,
also where a script that runs from right to left holds a name that runs from left to right."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cdlm_lab.apply.results import Attended, AttendedWord
from cdlm_lab.data.records import DocumentPair, PairDocument, Paragraph
from cdlm_lab.explorer.reading import Panel, Selection
from cdlm_lab.explorer.widget.content import ShownDocument
from cdlm_lab.explorer.widget.still import still_html
from cdlm_lab.tasks.coreference import view as coreference
from cdlm_lab.tasks.joint import answers_view as rankings
from cdlm_lab.tasks.joint import claims_view as verdicts
from cdlm_lab.tasks.joint.paragraphs_view import example_html
from cdlm_lab.tasks.matching import view as aligned
from cdlm_lab.tasks.multihop import view as questions
from cdlm_lab.tasks.tagging import view as tagged
from cdlm_lab.views import ask, packed
from cdlm_lab.views.html import ShownMention, headline, sentence_html, still_page

pytestmark = pytest.mark.browser
WORDS = ("השר", "אמר", "New", "York", "Times", "אתמול", "בלילה")
TEXT = " ".join(WORDS)
IN_READING_ORDER = ("בלילה", "אתמול", "New", "York", "Times", "אמר", "השר")  # as they stand, from the left
# For each block of the page that holds all words, the left end of the first place of each in it.
LEFTS = """words => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const blocks = new Map();
    while (walk.nextNode()) words.forEach((word, i) => {
        const node = walk.currentNode;
        const at = node.data.indexOf(word);
        if (at < 0) return;
        const range = document.createRange();
        range.setStart(node, at), range.setEnd(node, at + word.length);
        let block = node.parentElement;
        while (getComputedStyle(block).display === "inline") block = block.parentElement;
        if (!blocks.has(block)) blocks.set(block, {});
        if (range.getBoundingClientRect().width) blocks.get(block)[i] ??= range.getBoundingClientRect().left;
    });
    return [...blocks.values()].filter(block => Object.keys(block).length === words.length);
}"""


def still(**more: Any) -> str:
    document = ShownDocument(name="report", words=WORDS, sentences=((0, 7),), mentions=((2, 5, ""),))
    other = replace(document, mentions=())
    selection = Selection(source=(0, 0, 1), target=(1, 3, 4))
    every = np.ones(14, bool)
    panel = Panel(name="m", scores=np.arange(14.0), ranks=np.linspace(0, 100, 14), reach=every, read=every)
    form = {"panels": [panel], "layers": 1, "title": "still"} | more
    html = still_html([document, other], selection=selection, **form)
    return html[html.index("<table") :]  # below the list of the strongest words, which is in another order


def marked_tokens() -> packed.MarkedTokens:
    flags = {name: np.zeros(7, bool) for name in ("special", "cross_document")}
    flags["global_"] = np.array([False, True, False, True, False, False, False])
    return packed.MarkedTokens(
        tokens=list(WORDS), replacement=[None] * 7, starts_word=np.ones(7, bool), mask_token="[MASK]", **flags
    )


def packed_example() -> str:
    marked = marked_tokens()
    losses = [packed.DocumentLoss(title="report", cut=0)]
    names = ("tokens", "replacement", "starts_word", "mask_token", "special", "cross_document", "global_")
    form = {name: getattr(marked, name) for name in names}
    return packed.PackedPreview(
        **form, document=np.zeros(7, int), documents=losses, title="t", memory_bytes=1e9
    )._repr_html_()


def paragraph_example() -> str:
    return example_html(marked_tokens(), np.zeros(7, int), [("p", "d", None, 0, None)], title="t")


MENTION = ShownMention.from_tokens(WORDS, (2, 5), document="report", gold="a")
QUESTION = questions.ReadQuestion(
    id="q", question=TEXT, kind="bridge", gold_answer=TEXT, answer=TEXT, place=(0, "body", 0, len(TEXT)),
    paragraphs=(Paragraph(title=TEXT, sentences=(TEXT,)),), sentence_probabilities={(0, 0): 0.9},
    paragraph_probabilities=(0.9,), supporting=frozenset({(0, 0)}), gold_supporting=frozenset({(0, 0)}),
    answer_f1=0.0, answer_em=False, support_em=True, support_f1=1.0,
)  # fmt: skip
RANKING = rankings.ReadRanking(
    id="r", question=TEXT, candidates=(TEXT, TEXT), right=(True, False), scores={"a": (1.0, 0.5)}
)
CLAIM = verdicts.ReadClaim(
    id="c", claim=TEXT, gold="a", evidence=(TEXT, TEXT), probabilities={"a": 1.0}, shares=(0.5, 0.5)
)
OCCURRENCE = tagged.ReadOccurrence(words=WORDS, place=3, distance=1, weight=0.5, sentence=1)
UNTAGGED = [tagged.ReadWord(word=one, gold="O", predicted="O", occurrences=(OCCURRENCE,)) for one in WORDS]
TAGGED = tagged.ReadSentence(
    document="d", number=0, words=(*UNTAGGED[:3], replace(UNTAGGED[3], predicted="B-X"), *UNTAGGED[4:])
)
COLUMN = aligned.AlignedColumn(name="a", weights=[1.0])
DOCUMENT = PairDocument(id=TEXT, sentences=(TEXT,))
PAIR = DocumentPair(id="p", first=DOCUMENT, second=DOCUMENT, related=True, aligned=None, cluster="c")
ATTENDED = Attended(
    source="x", texts=(WORDS,),
    parts=[
        AttendedWord(word=one, text=0, place=n, start=0, end=1, score=0.5, rank=90.0)
        for n, one in enumerate(WORDS)
    ],
)  # fmt: skip

VIEWS: dict[str, Callable[[], str]] = {
    "explorer, standing still": still,
    "explorer, without an answer": lambda: still(panels=()),
    "packed tokens": packed_example,
    "hidden words of a paragraph": paragraph_example,
    "mention": lambda: sentence_html(MENTION, "#3b8ed0"),
    "clusters": lambda: coreference.clusters_html(
        [coreference.ShownCluster(name="1", mentions=(MENTION, MENTION)),
         coreference.ShownCluster(name="2", mentions=(MENTION,))]
    ),
    "wrong pairs": lambda: coreference.errors_html(
        [coreference.PairError(first=MENTION, second=MENTION, score=0.5)], [], threshold=0.5
    ),
    "question": lambda: questions.question_html(QUESTION),
    "questions, a page": lambda: questions.questions_page([QUESTION], title=TEXT),
    "ranking": lambda: rankings.ranking_html(RANKING, system="a", beside="a"),
    "claim": lambda: verdicts.verdict_html(CLAIM, shares="attention"),
    "tags": lambda: tagged.tagged_sentence_html(TAGGED, labels=()),
    "tags, a page": lambda: tagged.tagged_page([TAGGED], title=TEXT),
    "one alignment": lambda: aligned.pair_html(PAIR, [COLUMN]),
    "two alignments": lambda: aligned.pair_html(PAIR, [COLUMN, COLUMN]),
    "attended words": ATTENDED._repr_html_,
    "headline": lambda: headline(TEXT),
}  # fmt: skip


def test_a_typed_text_runs_in_the_direction_of_its_script(new_page: Callable[..., Any]):
    """The rule of the boxes, which ipywidgets draws as plain text areas."""
    page = new_page().page
    look = "resize:none;caret-color:transparent"
    box = f"<div class='cdlm-own'><textarea cols=60 style='{look}'></textarea></div>"
    page.set_content(ask._DIRECTION + box)
    page.locator("textarea").fill(TEXT)
    assert page.locator("textarea").evaluate("node => getComputedStyle(node).unicodeBidi") == "plaintext"
    page.locator("textarea").press("Control+Home")
    ink = page.locator("textarea").screenshot()
    page.locator("textarea").evaluate("node => node.dir = 'rtl'")
    assert page.locator("textarea").screenshot() == ink, "as if the reader had said so"


@pytest.fixture(scope="module")
def shown(chromium: Any) -> Any:
    context = chromium.new_context(viewport={"width": 2400, "height": 1000})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", VIEWS)
def test_words_stand_in_reading_order(name: str, shown: Any):
    markup = VIEWS[name]()
    if not markup.startswith("<!doctype"):
        markup = still_page(markup, title="t", note="", style="body{max-width:none!important}")
    shown.set_content(markup)
    shown.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    blocks = shown.evaluate(LEFTS, list(IN_READING_ORDER))
    assert blocks, "the sentence stands nowhere"
    for block in blocks:
        places = [block[str(i)] for i in range(len(WORDS))]
        assert places == sorted(places)
