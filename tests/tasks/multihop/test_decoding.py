"""Decoding of answers: which spans are allowed, the text of a span, which sentences are support."""

import dataclasses
import itertools
import re

import numpy as np
import pytest

from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.tasks.multihop.examples import NO_SENTENCE, QUESTION_TYPES, TITLE, QuestionSequence
from cdlm_lab.tasks.multihop.model import SpanCandidate, answer_span, best_spans, decode


def question_of(*paragraphs: tuple[str, tuple[str, ...]]) -> MultihopQuestion:
    made = (Paragraph(title=title, sentences=sentences) for title, sentences in paragraphs)
    return MultihopQuestion(id="q", text="Why?", paragraphs=tuple(made))


QUESTION = question_of(
    ("Big FIRE", ("The  fire broke out in Lund.", " Two died.")),
    ("Lund", ("Lund is a City.",)),
    ("Other", ("Nothing.",)),
)
# What stands at each position of its sequence, from 0, 4, 24 and 36 on.
LINES = (
    "[CLS] [q] Why? [/q]",
    "<doc-s> <t> Big FIRE </t> [s] The fire broke out in Lund . [/s] [s] Two died . [/s] </doc-s>",
    "<doc-s> <t> Lund </t> [s] Lund is a City . [/s] </doc-s>",
    "<doc-s> <t> Other </t> [s] Nothing . [/s] </doc-s> [SEP]",
)
TOKENS = " ".join(LINES).split()
BIG, FIRE_TITLE, THE, FIRE, OUT, LUND, STOP, TWO, DIED = 6, 7, 10, 11, 13, 15, 16, 19, 20
LUND_TITLE, LUND_BODY, IS, CITY = 26, 29, 30, 32


def sequence_of(paragraph, sentence, offsets, *, paragraphs, sentences, names) -> QuestionSequence:
    return QuestionSequence(
        input_ids=np.arange(len(paragraph)),
        global_attention_mask=np.zeros(len(paragraph), dtype=np.int64),
        paragraph=np.array(paragraph),
        sentence=np.array(sentence),
        offsets=np.array(offsets),
        paragraph_positions=np.array(paragraphs),
        sentence_positions=np.array(sentences),
        sentence_names=np.array(names),
        lost_tokens=0,
    )


@pytest.fixture
def sequence() -> QuestionSequence:
    """Make the sequence of QUESTION as if each word and each full stop were one token."""
    names = [[0, 0], [0, 1], [1, 0], [2, 0]]
    count = len(TOKENS)
    form = {"paragraphs": [5, 25, 37], "sentences": [9, 18, 28, 40], "names": names}
    made = sequence_of([-1] * count, [NO_SENTENCE] * count, [[0, 0]] * count, **form)
    at = 4
    for number, paragraph in enumerate(QUESTION.paragraphs):
        starts = np.cumsum([0, *map(len, paragraph.sentences)])
        texts = [(TITLE, 0, paragraph.title), *zip(range(9), starts, paragraph.sentences, strict=False)]
        first = at
        at += 1  # <doc-s>
        for sentence, start, text in texts:
            at += 1  # <t> or [s]
            for match in re.finditer(r"\w+|\.", text):
                assert TOKENS[at] == match[0]
                made.sentence[at] = sentence
                made.offsets[at] = start + match.start(), start + match.end()
                at += 1
            at += 1  # </t> or [/s]
        at += 1  # </doc-s>
        made.paragraph[first:at] = number
    return made


def logits_of(**values: dict[int, float]) -> dict[str, np.ndarray]:
    """Make logits for QUESTION: -9 everywhere except at the given positions; the answer type is "span"."""
    sizes = {"start": len(TOKENS), "end": len(TOKENS), "sentence": 4, "paragraph": 3}
    made = {name: np.full(size, -9.0) for name, size in sizes.items()} | {"type": np.array([1.0, 0.0, 0.0])}
    for name, places in values.items():
        for place, value in places.items():
            made[name][place] = value
    return {f"{name}_logits": logits.astype(np.float32) for name, logits in made.items()}


def best(sequence: QuestionSequence, start: dict, end: dict, **settings: int) -> list[tuple[int, int, float]]:
    logits = logits_of(start=start, end=end)
    return best_spans(logits["start_logits"], logits["end_logits"], sequence, **settings)


# start logits, end logits, first and last token and score of the best span
VALID = {
    "the best of both": ({FIRE: 3, LUND: 2}, {OUT: 3, LUND: 2}, (FIRE, OUT, 6.0)),
    "one token": ({LUND: 3}, {LUND: 3}, (LUND, LUND, 6.0)),
    "the end is before the start": ({OUT: 3, FIRE: 1}, {FIRE: 3}, (FIRE, FIRE, 4.0)),
    "into another paragraph": ({LUND: 3}, {CITY: 4, LUND: -2}, (LUND, LUND, 1.0)),
    "from the title into the body": ({BIG: 3}, {FIRE: 4, FIRE_TITLE: -2}, (BIG, FIRE_TITLE, 1.0)),
    "over the end of a sentence": ({LUND: 3}, {DIED: 4, LUND: -2}, (LUND, LUND, 1.0)),
    "the question": ({2: 9, LUND: 3}, {2: 9, LUND: 1}, (LUND, LUND, 4.0)),
    "a mark": ({9: 9, 5: 9, 0: 9, LUND: 3}, {17: 9, 43: 9, LUND: 1}, (LUND, LUND, 4.0)),
}


@pytest.mark.parametrize(("start", "end", "expected"), VALID.values(), ids=VALID.keys())
def test_the_best_span_is_the_best_that_may_be_an_answer(sequence, start, end, expected):
    assert best(sequence, start, end)[0] == expected


def test_ties_go_to_the_first(sequence: QuestionSequence):
    start, end = {FIRE: 1, LUND: 1, TWO: 1}, {LUND: 1, TWO: 1}
    spans = [(first, last) for first, last, score in best(sequence, start, end) if score == 2]
    assert spans == [(FIRE, LUND), (LUND, LUND), (TWO, TWO)]  # TWO is in the next sentence
    # all tokens alike: the first two starts and ends, then the first token
    assert best(sequence, {}, {}, count=2)[0][:2] == (BIG, BIG)
    assert best(sequence, {CITY: 1}, {BIG: 1, IS: 0, LUND: 0}, count=1) == [(BIG, BIG, -8.0)]
    assert decode(QUESTION, sequence, logits_of(type={0: 0.0})).type == "span"


def slow_best_spans(start, end, sequence, *, count, most_tokens):
    """Return the best spans by a direct implementation of the definition."""
    text = [n for n in range(len(TOKENS)) if sequence.sentence[n] != NO_SENTENCE]
    starts = sorted(text, key=lambda n: (-start[n], n))[:count]
    ends = sorted(text, key=lambda n: (-end[n], n))[:count]
    actual = []
    for first, last in itertools.product(text, text):
        same_part = sequence.sentence[first] == sequence.sentence[last]  # a title counts as a sentence
        same = same_part and sequence.paragraph[first] == sequence.paragraph[last]
        length = sum(1 for n in text if first <= n <= last)
        if first in starts and last in ends and same and 1 <= length <= most_tokens:
            actual.append((first, last, start[first] + end[last]))
    if not actual:
        one = max(text, key=lambda n: (start[n] + end[n], -n))
        actual = [(one, one, start[one] + end[one])]
    return sorted(actual, key=lambda span: (-span[2], span[0], span[1]))


@pytest.mark.parametrize(("count", "most_tokens"), [(1, 30), (2, 2), (4, 3), (8, 1), (20, 30), (99, 6)])
def test_the_best_spans_are_the_definition(sequence: QuestionSequence, count: int, most_tokens: int):
    """Logits of minus infinity where no answer can be, and padding after the sequence, change nothing."""
    rng, limits = np.random.default_rng(count), {"count": count, "most_tokens": most_tokens}
    for high in (3, 1000):  # many ties; few
        for _ in range(20):
            start, end = rng.integers(-high, high, size=(2, len(TOKENS))).astype(np.float32)
            expected = slow_best_spans(start, end, sequence, **limits)
            filled = [
                np.append(np.where(sequence.answerable, of, -np.inf), [-np.inf] * 5) for of in (start, end)
            ]
            for logits in ((start, end), filled):
                assert best_spans(*logits, sequence, **limits) == expected


@pytest.mark.parametrize(("first", "last", "text"), [
    (THE, FIRE, "The  fire"), (LUND, DIED, "Lund. Two died"), (BIG, FIRE_TITLE, "Big FIRE"),
    (LUND_TITLE, LUND_TITLE, "Lund"), (LUND_BODY, 33, "Lund is a City."), (18 + 1, 21, "Two died."),
])  # fmt: skip
def test_the_text_keeps_its_casing_and_spacing(sequence: QuestionSequence, first, last, text):
    assert answer_span(QUESTION, sequence, SpanCandidate(first=first, last=last, score=0.0)).text == text


def test_an_answer_has_its_place(sequence: QuestionSequence):
    logits = logits_of(start={DIED: 3, LUND_TITLE: 1}, end={DIED: 3, LUND_TITLE: 1.5})
    answer = decode(QUESTION, sequence, logits)
    # paragraph 0: "The  fire broke out in Lund." has 28 characters, " Two died." follows
    assert (answer.text, answer.type, answer.place) == ("died", "span", (0, "body", 33, 37))
    assert QUESTION.paragraphs[0].text[33:37] == "died"
    assert answer.n_best[0] == ("died", 6.0, (0, "body", 33, 37))
    assert answer.n_best[1] == ("Lund", 2.5, (1, "title", 0, 4))
    read = sequence.answerable
    ends = [np.exp(3) / np.exp(logits[f"{end}_logits"][read].astype(float)).sum() for end in ("start", "end")]
    assert answer.probability == pytest.approx(np.e / (np.e + 2) * np.prod(ends))
    assert len(answer.n_best) == 20, "as many as `count`"
    assert len(decode(QUESTION, sequence, logits, count=1).n_best) == 1
    assert decode(QUESTION, sequence, logits, most_tokens=1).n_best[2].score < 0
    for number, kind in ((1, "yes"), (2, "no")):  # which take the place of the span
        logits["type_logits"] = np.log([1.0, 1.0, 1.0])
        logits["type_logits"][number] = np.log(2)
        answer = decode(QUESTION, sequence, logits)
        assert (answer.text, answer.type, answer.place) == (kind, kind, None)
        assert answer.n_best[0].text == "died"
        assert answer.probability == pytest.approx(0.5)
        assert answer.type_probabilities == pytest.approx(dict.fromkeys(QUESTION_TYPES, 0.25) | {kind: 0.5})


# logits of the four sentences and of the three paragraphs, support by threshold and in two paragraphs
SUPPORT = {
    "several": ((1, 2, -1, 3), (0, 0, 0), ((0, 0), (0, 1), (2, 0)), ((0, 0), (0, 1), (2, 0))),
    "none above": ((-1, -2, -3, -4), (0, 0, 0), ((0, 0),), ((0, 0), (1, 0))),
    "one above": ((-1, 2, -3, -2), (0, 0, 0), ((0, 1),), ((0, 1), (2, 0))),
    "just 0.5 is not above": ((0, -1, 1, -9), (0, 0, 0), ((1, 0),), ((0, 0), (1, 0))),
    "all": ((1, 1, 1, 1), (0, 0, 0), ((0, 0), (0, 1), (1, 0), (2, 0)), ((0, 0), (0, 1), (1, 0))),
    "paragraphs decide": ((1, 1, 1, 1), (-5, 1, 1), ((0, 0), (0, 1), (1, 0), (2, 0)), ((1, 0), (2, 0))),
    # 1 + 2 = 3, 4 - 2 = 2 and 0 + 2.5 = 2.5
    "both decide": ((2, -1, -2, 2.5), (1, 4, 0), ((0, 0), (2, 0)), ((0, 0), (2, 0))),
    "ties": ((-1, -1, -1, -1), (0, 0, 0), ((0, 0),), ((0, 0), (1, 0))),
}


@pytest.mark.parametrize(
    ("sentences", "paragraphs", "threshold", "two_paragraphs"), SUPPORT.values(), ids=SUPPORT.keys()
)
def test_support(sequence, sentences, paragraphs, threshold, two_paragraphs):
    logits = logits_of(sentence=dict(enumerate(sentences)), paragraph=dict(enumerate(paragraphs)))
    assert decode(QUESTION, sequence, logits).supporting == threshold
    assert decode(QUESTION, sequence, logits, support="two_paragraphs").supporting == two_paragraphs


def test_support_of_paragraphs_without_sentences_and_of_one_alone(sequence: QuestionSequence):
    cut = dataclasses.replace(sequence, sentence_names=sequence.sentence_names[[0, 1, 3]])
    logits = logits_of(sentence={0: 1, 1: -1, 2: -2}, paragraph={1: 20})
    assert decode(QUESTION, cut, logits, support="two_paragraphs").supporting == ((0, 0), (2, 0))
    assert (1, 0) not in decode(QUESTION, cut, logits).sentence_probabilities
    form = {"paragraphs": [0], "sentences": [0, 0], "names": [[0, 0], [0, 1]]}
    offsets = [[0, 0], [0, 1], [0, 1], [3, 4]]
    one = sequence_of([-1, 0, 0, 0], [NO_SENTENCE, TITLE, 0, 1], offsets, **form)
    logits = {"type": np.zeros(3), "start": np.arange(4.0), "end": np.arange(4.0)}
    logits |= {"sentence": np.array([-2.0, -1.0]), "paragraph": np.zeros(1)}
    named = {f"{name}_logits": values for name, values in logits.items()}
    answer = decode(question_of(("A", ("B.", " C."))), one, named, support="two_paragraphs")
    assert (answer.text, answer.supporting) == ("C", ((0, 1),))


def test_what_cannot_be_decoded(sequence: QuestionSequence):
    sequence.sentence[:] = NO_SENTENCE
    with pytest.raises(ValueError, match="no token of the sequence can be an answer"):
        decode(QUESTION, sequence, logits_of())


@pytest.mark.parametrize(
    ("source", "start", "end", "answer"),
    [
        ("in Firnuvoll, a town", 3, 7, "Firnuvoll"),  # "Firn"
        ("in Firnuvoll, a town", 5, 9, "Firnuvoll"),
        ("in Firnuvoll, a town", 0, 6, "in Firnuvoll"),
        ("in Firnuvoll, a town", 3, 13, "Firnuvoll,"),  # signs are no letters
        ("12,444 men", 0, 2, "12"),
        ("the 1990s", 4, 6, "1990s"),
        ("\u6771\u4eac\u90fd", 1, 2, "\u4eac"),  # words without spaces between them
    ],
)
def test_an_answer_goes_to_the_ends_of_its_words(source: str, start: int, end: int, answer: str):
    made = sequence_of([0], [0], [[start, end]], paragraphs=[0], sentences=[0], names=[[0, 0]])
    span = SpanCandidate(first=0, last=0, score=0.0)
    assert answer_span(question_of(("T", (source,))), made, span).text == answer


def test_spans_that_become_the_same_words_are_one(sequence: QuestionSequence):
    """ "City" read as two tokens: whichever of them is chosen, the answer is the word."""
    sequence.offsets[IS] = sequence.offsets[CITY][0], sequence.offsets[CITY][0] + 2
    sequence.offsets[CITY] = sequence.offsets[CITY][0] + 2, sequence.offsets[CITY][1]
    logits = {IS: 2.0, CITY: 1.0}
    actual = decode(QUESTION, sequence, logits_of(start=logits, end=logits), count=2)
    assert actual.text == "City"
    assert [span.text for span in actual.n_best].count("City") == 1
    assert actual.n_best[0].score == 4.0
