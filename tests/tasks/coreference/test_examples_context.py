"""Sequences of two mentions: what they look like, and what is kept of documents that are too long.

Word n of the first document is `wn`, of the second `w(150 + n)`, one id each, so that a text shows where it
comes from.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.attention.global_tokens import mention_tokens
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.tasks.coreference.examples import (
    MENTION_END,
    MENTION_START,
    MentionMarks,
    MentionPairExamples,
    marks_from_tokenizer,
)

SECOND = 150  # the first word of the second document


@pytest.fixture(scope="module")
def marked(tokenizer):
    """The tokenizer of whole words, with the marks of mentions added."""
    marked = copy.deepcopy(tokenizer)
    marked.add_tokens([MENTION_START, MENTION_END], special_tokens=True)
    return marked


def document(name: str, words: Sequence[str], sentence: int = 100) -> CoreferenceDocument:
    """Make a document with sentences of this many words."""
    edges = range(0, len(words), sentence)
    sentences = tuple((n, min(n + sentence, len(words))) for n in edges)
    spans = {"sentences": sentences, "validated": ()}
    return CoreferenceDocument(id=name, topic="t", subtopic="s", tokens=tuple(words), **spans)


def examples_of(documents, spans, tokenizer, *, sentence: int = 100, **settings) -> MentionPairExamples:
    """Make a data set with one pair, of two mentions at spans (document, start, end)."""
    mentions = [
        CoreferenceMention(
            id=f"m{n}", document=f"d{d}", tokens=(a, b), sentence=a // sentence, kind="event", cluster="c"
        )
        for n, (d, a, b) in enumerate(spans)
    ]
    return MentionPairExamples(
        mentions=mentions,
        pairs=np.array([[0, 1]]),
        documents=EncodedDocuments(documents, tokenizer),
        special=from_tokenizer(tokenizer),
        marks=marks_from_tokenizer(tokenizer),
        **settings,
    )


@pytest.fixture(scope="module")
def build(marked):
    """Function that returns sequence and size of the pair of two spans in documents of numbered words."""

    def build(*spans, lengths=(6, 6), sentence=100, context="documents", max_length=512):
        documents = [
            document(f"d{d}", [f"w{d * SECOND + n}" for n in range(length)], sentence)
            for d, length in enumerate(lengths)
        ]
        settings = {"sentence": sentence, "context": context, "max_length": max_length}
        examples = examples_of(documents, spans, marked, **settings)
        return examples.describe(0), examples.size_of(0)

    return build


@pytest.fixture(scope="module")
def text(marked):
    """Function that writes a sequence with short marks, without `w`: "[CLS] ( 0 <1 2> ) ( 150 ) [SEP]"."""

    def text(ids) -> str:
        words = " ".join(marked.convert_ids_to_tokens(np.asarray(ids).tolist()))
        words = re.sub(r"\bw(?=\d)", "", words)
        for mark, sign in (("</m>", ">"), ("<m>", "<"), ("</doc-s>", ")"), ("<doc-s>", "(")):
            words = words.replace(mark, sign)
        return words.replace("< ", "<").replace(" >", ">")

    return text


def test_two_documents(build, marked):
    pair, _ = build((0, 2, 4), (1, 0, 1), lengths=(5, 3))
    words = marked.convert_ids_to_tokens(pair.input_ids.tolist())
    assert " ".join(words) == (
        "[CLS] <doc-s> w0 w1 <m> w2 w3 </m> w4 </doc-s> <doc-s> <m> w150 </m> w151 w152 </doc-s> [SEP]"
    )
    assert [[words[n] for n in np.flatnonzero(row)] for row in pair.mention_mask] == [["w2", "w3"], ["w150"]]
    globally = " ".join(words[n] for n in np.flatnonzero(pair.global_attention_mask))
    assert globally == "[CLS] <m> w2 w3 </m> <m> w150 </m>"
    assert (pair.kept_tokens, pair.lost_tokens, pair.reasons) == ((5, 3), (0, 0), ("", ""))
    kinds = [array.dtype for array in (pair.input_ids, pair.global_attention_mask, pair.mention_mask)]
    assert kinds == [np.int64, np.int64, bool]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1, 2), (4, 6), "0 <1> 2 3 <4 5>"),
        ((0, 5), (1, 3), "<0 <1 2> 3 4> 5"),  # nested
        ((0, 3), (0, 1), "<<0> 1 2> 3 4 5"),  # nested, from the same word on
        ((0, 3), (2, 3), "<0 1 <2>> 3 4 5"),  # nested, up to the same word
        ((0, 4), (2, 6), "<0 1 <2 3> 4 5>"),  # crossing
        ((0, 2), (2, 6), "<0 1> <2 3 4 5>"),  # adjacent
        ((5, 6), (4, 5), "0 1 2 3 <4> <5>"),  # adjacent, the later one first
        ((1, 3), (1, 3), "0 <<1 2>> 3 4 5"),  # identical
    ],
)
def test_one_document_stands_there_once(build, text, first, second, expected):
    """In either order of the mentions, whose order `mention_mask` keeps."""
    for spans in ((first, second), (second, first)):
        pair, size = build(*((0, *span) for span in spans))
        assert text(pair.input_ids) == f"[CLS] ( {expected} ) [SEP]"
        for row, (start, end) in zip(pair.mention_mask, spans, strict=True):
            assert text(pair.input_ids[row]) == " ".join(str(n) for n in range(start, end))
        assert pair.kept_tokens == (6,)
        both = set(range(*first)) | set(range(*second))
        assert pair.global_attention_mask.sum() == size.global_count == 5 + len(both)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 4, 5), (1, 2, 3), "( 3 <4> 5 ) ( 150 151 <152> )"),
        ((0, 3, 4), (0, 5, 6), "( <3> 4 <5> )"),  # one sentence, once
        ((0, 3, 6), (0, 4, 5), "( <3 <4> 5> )"),
        ((0, 7, 8), (0, 0, 1), "( <0> 1 2 6 <7> 8 )"),  # two sentences in one frame, in order
        ((0, 2, 3), (0, 3, 4), "( 0 1 <2> <3> 4 5 )"),
        ((0, 9, 10), (1, 9, 10), "( <9> ) ( <159> )"),  # the last sentence has one word
    ],
)
def test_sentences(build, text, first, second, expected):
    pair, size = build(first, second, lengths=(10, 10), sentence=3, context="sentences")
    assert text(pair.input_ids) == f"[CLS] {expected} [SEP]"
    assert set(pair.lost_tokens) == {0}  # the rest of a document is no loss: it was not asked for
    for row, (document, start, end) in zip(pair.mention_mask, (first, second), strict=True):
        assert text(pair.input_ids[row]) == " ".join(str(document * SECOND + n) for n in range(start, end))
    assert size.length == len(pair.input_ids)


# Two documents cost 2 + 2 x 2 + 4 = 10 tokens besides text, one document 8.
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 50, 51), (1, 20, 21), "( 48 49 <50> 51 52 ) ( 168 169 <170> 171 172 )"),  # in the middle
        ((0, 1, 2), (1, 99, 100), "( 0 <1> 2 3 4 ) ( 245 246 247 248 <249> )"),  # shifted at the borders
        ((0, 98, 99), (1, 0, 1), "( 95 96 97 <98> 99 ) ( <150> 151 152 153 154 )"),
        ((0, 30, 37), (1, 50, 51), "( <30 31 32 33 34 35 36> ) ( 199 <200> 201 )"),  # more than a share
        ((0, 30, 32), (1, 40, 48), "( <30 31> ) ( <190 191 192 193 194 195 196 197> )"),  # no word more
    ],
)
def test_two_long_documents(build, text, first, second, expected):
    pair, size = build(first, second, lengths=(100, 100), max_length=20)
    assert text(pair.input_ids) == f"[CLS] {expected} [SEP]"
    assert len(pair.input_ids) == size.length == 20
    assert sum(pair.kept_tokens) == 10
    assert [kept + lost for kept, lost in zip(pair.kept_tokens, pair.lost_tokens, strict=True)] == [100, 100]
    assert sum(pair.lost_tokens) == size.lost_tokens == 190
    assert pair.reasons == ("outside the window",) * 2


def test_a_short_document_leaves_the_rest_of_its_share(build, text):
    pair, _ = build((0, 50, 51), (1, 1, 2), lengths=(100, 2), max_length=19)
    assert text(pair.input_ids) == "[CLS] ( 47 48 49 <50> 51 52 53 ) ( 150 <151> ) [SEP]"
    assert (pair.lost_tokens, pair.reasons) == ((93, 0), ("outside the window", ""))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((40, 41), (44, 45), "37 38 39 <40> 41 42 43 <44> 45 46"),  # one window, between them
        ((44, 45), (40, 41), "37 38 39 <40> 41 42 43 <44> 45 46"),
        ((0, 1), (3, 4), "<0> 1 2 <3> 4 5 6 7 8 9"),
        ((30, 38), (33, 40), "<30 31 32 <33 34 35 36 37> 38 39>"),  # crossing, just fits
        ((30, 38), (31, 33), "29 <30 <31 32> 33 34 35 36 37> 38"),  # nested
        ((10, 11), (80, 81), "8 9 <10> 11 12 78 79 <80> 81 82"),  # two windows, joined
        ((99, 100), (0, 1), "<0> 1 2 3 4 95 96 97 98 <99>"),
        ((40, 44), (46, 51), "39 <40 41 42 43> <46 47 48 49 50>"),  # 11 words from end to end
    ],
)
def test_two_mentions_of_one_long_document(build, text, first, second, expected):
    pair, size = build((0, *first), (0, *second), lengths=(100,), max_length=18)
    assert text(pair.input_ids) == f"[CLS] ( {expected} ) [SEP]"
    assert len(pair.input_ids) == size.length == 18
    assert (pair.kept_tokens, pair.lost_tokens, size.lost_tokens) == ((10,), (90,), 90)


def test_long_sentences_are_cut_too(build, text):
    pair, _ = build((0, 5, 6), (1, 79, 80), lengths=(80, 80), sentence=40, context="sentences", max_length=16)
    assert text(pair.input_ids) == "[CLS] ( 4 <5> 6 ) ( 227 228 <229> ) [SEP]"
    assert pair.lost_tokens == (37, 37)  # of their sentences
    pair, _ = build((0, 5, 6), (0, 79, 80), lengths=(80,), sentence=20, context="sentences", max_length=16)
    assert text(pair.input_ids) == "[CLS] ( 3 4 <5> 6 76 77 78 <79> ) [SEP]"
    assert pair.lost_tokens == (32,)


@pytest.mark.parametrize(
    ("first", "second", "document", "lengths", "room"),
    [
        ((0, 3, 10), (1, 20, 23), 1, (7, 3), 9),
        ((0, 3, 14), (0, 20, 21), 0, (11, 1), 11),
        ((0, 3, 13), (0, 9, 15), 0, (10, 6), 11),  # crossing: 12 words together
    ],
)
def test_mentions_that_do_not_fit(build, first, second, document, lengths, room):
    message = (
        f"mention m0 of document d0 (length {lengths[0]}) and mention m1 of document d{document} (length "
        f"{lengths[1]}) need 20 tokens with marks and frames, but max_length 19 leaves {room} for text; "
        "raise it or leave the pair out"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        build(first, second, lengths=(40, 40), max_length=19)
    pair, _ = build(first, second, lengths=(40, 40), max_length=20)
    assert len(pair.input_ids) == 20


@pytest.mark.parametrize(
    ("second", "settings", "message"),
    [
        ((1, 0, 1), {"max_length": 3}, "max_length 3 leaves 0 for text"),
        ((1, 0, 1), {"context": "document"}, "context is 'document'; choose one of documents, sentences"),
        ((1, 0, 1), {"lengths": (6,)}, "mention m1 of document d1: no document of this id was given"),
        ((1, 5, 7), {}, r"mention m1 of document d1: its tokens \(5, 7\) lie outside"),
    ],
)
def test_pairs_that_make_no_sense(build, second, settings, message):
    with pytest.raises(ValueError, match=message):
        build((0, 0, 1), second, **settings)


@st.composite
def pairs(draw):
    """Draw two spans in one or two documents, a length of sentences, a context and a limit of length."""
    lengths = draw(st.tuples(*[st.integers(1, 60)] * 2))
    sentence = draw(st.sampled_from([1, 4, 13, 60]))
    spans = []
    for _ in range(2):
        document = draw(st.integers(0, 1))
        start = draw(st.integers(0, lengths[document] - 1))
        last = min(start // sentence * sentence + sentence, lengths[document])
        spans.append((document, start, draw(st.integers(start + 1, last))))
    context = draw(st.sampled_from(["documents", "sentences"]))
    limit = draw(st.integers(0, 140))
    return spans, {"lengths": lengths, "sentence": sentence, "context": context, "max_length": limit}


@given(pairs())
def test_whatever_fits_is_there(build, text, drawn):
    """Mentions are whole, marks balanced, words in order; no space is wasted, and counts add up."""
    (first, second), settings = drawn
    words = [set(range(SECOND * d + start, SECOND * d + end)) for d, start, end in (first, second)]
    frames = len({first[0], second[0]})
    needed = 2 + 2 * frames + 4 + len(words[0] | words[1])
    if needed > settings["max_length"]:
        with pytest.raises(ValueError, match=f"need {needed} tokens with marks and frames, but max_length"):
            build(first, second, **settings)
        return
    pair, size = build(first, second, **settings)
    assert len(pair.input_ids) <= settings["max_length"]
    assert len(pair.input_ids) == size.length == 6 + 2 * frames + sum(pair.kept_tokens)
    assert pair.global_attention_mask.sum() == size.global_count == 5 + len(words[0] | words[1])
    assert sum(pair.lost_tokens) == size.lost_tokens
    if size.lost_tokens:
        assert size.length == settings["max_length"]
    for row, expected in zip(pair.mention_mask, words, strict=True):
        assert [int(word) for word in text(pair.input_ids[row]).split()] == sorted(expected)
    assert_frames_hold_the_context(text(pair.input_ids), pair, (first, second), settings)


def assert_frames_hold_the_context(written: str, pair, spans, settings) -> None:
    """Check that each frame has words of its context in order, as many as counted, and all mention marks."""
    assert re.fullmatch(r"\[CLS\]( \([^()]*\))+ \[SEP\]", written)
    frames = re.findall(r"\(([^()]*)\)", written)
    order = list(dict.fromkeys(document for document, _, _ in spans))
    for frame, document, kept, lost in zip(frames, order, pair.kept_tokens, pair.lost_tokens, strict=True):
        length, sentence = settings["lengths"][document], settings["sentence"]
        wanted = set(range(length))
        if settings["context"] == "sentences":
            numbers = {start // sentence for d, start, _ in spans if d == document}
            wanted = {word for word in wanted if word // sentence in numbers}
        result = [int(word) - SECOND * document for word in re.findall(r"\d+", frame)]
        assert result == sorted(set(result) & wanted)
        assert (len(result), len(wanted) - len(result)) == (kept, lost)
        assert frame.count("<") == frame.count(">") == sum(d == document for d, _, _ in spans)


def test_marks_of_a_tokenizer(tokenizer, marked):
    words = marked.get_vocab()
    assert marks_from_tokenizer(marked) == MentionMarks(start=words["<m>"], end=words["</m>"])
    with pytest.raises(ValueError, match="has no <m>: load it with"):
        marks_from_tokenizer(tokenizer)


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_global_tokens_of_a_batch(kind):
    """Both mentions are global, and tokens 2, 8 and 9 wherever they are."""
    input_ids = kind([[2, 8, 5, 9, 8, 6, 9, 3], [2, 5, 8, 6, 6, 9, 3, 1]])
    mentions = kind(
        [
            [[0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0]],
            [[0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0]],
        ]
    )
    result = mention_tokens(input_ids, mentions > 0, others=(2, 8, 9))
    assert isinstance(result, type(input_ids))
    assert result.dtype in (bool, torch.bool)
    assert ["".join(str(int(flag)) for flag in row) for row in result] == ["11111110", "10111100"]
