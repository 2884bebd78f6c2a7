"""A language model over texts: what it gives agrees with the model itself, and what does not fit is said."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.apply.language import LanguageModel
from cdlm_lab.encoders.source_attention import attend_to_source
from cdlm_lab.examples.packing import pack_documents
from cdlm_lab.examples.tokens import from_tokenizer, tokenise
from cdlm_lab.parameters import ParameterError
from cdlm_lab.views.answers import ForeignText, TextCut

TEXTS = ["The recount began on Monday in Telk.", "Votes were counted again. The count ended <b>late</b>."]
HOSTILE = "<script>alert(1)</script>"


def packed(cdlm: LanguageModel, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of texts in one sequence, and which of them are text."""
    ids = tokenise(texts, cdlm.tokenizer)["input_ids"]
    form = {"max_length": 512, "policy": "equal_share", "special": from_tokenizer(cdlm.tokenizer)}
    one = pack_documents(ids, **form)
    return one.input_ids, ~one.is_special


def test_vectors_are_the_last_states_and_offsets_lead_back_to_the_text(cdlm: LanguageModel) -> None:
    encoded = cdlm.encode(TEXTS)
    ids, is_text = packed(cdlm, TEXTS)
    is_global = torch.zeros(1, len(ids), dtype=torch.long)
    is_global[:, 0] = 1
    with torch.inference_mode():
        states = cdlm.model.longformer(torch.from_numpy(ids)[None], global_attention_mask=is_global)[0][0]
    vectors = np.concatenate([one.vectors for one in encoded])
    np.testing.assert_allclose(vectors, states[torch.from_numpy(is_text)], atol=1e-5)
    for text, one in zip(TEXTS, encoded, strict=True):
        assert [text[start:end] for start, end in one.offsets] == list(one.tokens)
        assert "".join(one.tokens).replace(" ", "") == text.replace(" ", "")
    frame = encoded.to_frame()
    assert list(frame.columns[:5]) == ["text", "token", "start", "end", "v0"]
    assert len(frame) == len(vectors)
    alone = cdlm.encode(TEXTS, together=False)
    assert np.abs(alone[1].vectors - encoded[1].vectors).max() > 1e-3, "the other text counts"
    np.testing.assert_allclose(cdlm.encode(TEXTS[1])[0].vectors, alone[1].vectors, atol=1e-5)


def test_a_blank_of_one_piece_has_the_models_probabilities_with_the_blank_global(cdlm: LanguageModel) -> None:
    texts = ["The mayor spoke on [MASK] in Telk.", "On Monday the mayor of Telk spoke."]
    (blank,) = cdlm.fill(texts, top=3, pieces=1)
    ids, _ = packed(cdlm, ["The mayor spoke on in Telk.", texts[1]])
    before = 2 + len(tokenise(["The mayor spoke on"], cdlm.tokenizer)["input_ids"][0])
    ids = torch.from_numpy(np.insert(ids, before, cdlm.tokenizer.mask_token_id))[None]
    with torch.inference_mode():
        is_mask = (ids == cdlm.tokenizer.mask_token_id).long()
        shares = cdlm.model(ids, global_attention_mask=is_mask).logits[0, before].softmax(-1)
    assert texts[0][blank.start :].startswith("[MASK]")
    for word in blank.words:
        (number,) = tokenise([f" {word.word}"], cdlm.tokenizer)["input_ids"][0]
        assert word.probability == pytest.approx(float(shares[number]), rel=1e-4)
    assert [one.probability for one in blank.words] == sorted(
        (one.probability for one in blank.words), reverse=True
    )


def test_each_blank_is_filled_with_whole_words_of_one_piece_and_of_several(cdlm: LanguageModel) -> None:
    filled = cdlm.fill(["A [MASK] broke out; (<mask> people died.", "The fire killed 14 people."], pieces=2)
    assert [(one.text, one.start) for one in filled] == [(0, 2), (0, 21)]
    words = [word for one in filled for word in one.words]
    assert {word.pieces for word in words} == {1, 2}
    assert all(word.word and not word.word.startswith((" ", "<")) and " " not in word.word for word in words)
    assert all(0 < word.probability <= 1 for word in words)
    assert list(filled.to_frame().columns) == ["text", "start", "word", "probability", "pieces"]


@pytest.mark.parametrize("top", [1, 3, 8])
def test_the_probabilities_of_a_blank_add_up_to_one_at_most(cdlm: LanguageModel, top: int) -> None:
    report = "A {} broke out at the mill in {} on {}, police said. The {} rose, said Mayor {} of {}."
    truth = ("fire", "Oskmere", "Monday", "river", "Brandir", "Oskmere")
    totals = []
    for hidden in range(len(truth)):
        words = ["[MASK]" if n == hidden else word for n, word in enumerate(truth)]
        (blank,) = cdlm.fill([report.format(*words), report.format(*truth)], top=top)
        totals.append(sum(one.probability for one in blank.words))
        assert all(0 < one.probability <= 1 for one in blank.words)
    assert max(totals) <= 1 + 1e-6
    assert max(totals) > 0.9, "one that is sure stays so"


def test_attention_is_that_of_the_analysis_among_the_words_of_the_others(cdlm: LanguageModel) -> None:
    attended = cdlm.attention(TEXTS, source=(0, "Recount"))
    assert {one.text for one in attended} == {1}
    assert "." not in [one.word for one in attended]
    assert sorted(one.rank for one in attended)[0] == 0
    assert attended.best(1)[0].rank == 100
    assert attended.to_frame()["rank"].is_monotonic_decreasing
    from cdlm_lab.data.marked import marked_texts
    from cdlm_lab.explorer.reading import read_documents

    named = {f"text {n}": text for n, text in enumerate(TEXTS)}
    documents = marked_texts(named, kind="event", needs_marks=False).documents
    (reader,) = read_documents(documents, {"": (cdlm.model, cdlm.tokenizer)}, max_length=512)
    source = reader.positions((0, 1, 2))
    read = attend_to_source(cdlm.model, reader.sequence.input_ids, source=source, layers=[-1])
    weights = (read.given[0] + read.received[0]).sum(axis=(0, 1))
    place = next(one for one in attended if one.word == "again")
    positions = reader.positions((1, place.place, place.place + 1))
    order = [one.word for one in attended.best(2)]
    assert (order[0] == "again") == (weights[positions].mean() > 0 and place.rank == 100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.encode([]), "there is no text; give at least one"),
        (lambda m: m.encode(["a", " "]), "text 1 is empty; write some text"),
        (lambda m: m.encode(["a", 3]), "text 1 is int; names and texts must be text"),
        (lambda m: m.encode(["a"] * 300), "reads 512 tokens at once, which leaves no room for 300 texts"),
        (lambda m: m.fill("no blank"), r"no text has a blank; write \[MASK\]"),
        (lambda m: m.fill("a [MASK]", top=0), "top is 0 and pieces 4; both must be at least 1"),
        (lambda m: m.fill("[MASK]" + " word" * 600 + " [MASK]"), "text 0: its blanks are .* tokens apart"),
        (lambda m: m.attention(TEXTS, (0, "recnt")), "text 0 has no 'recnt'; did you mean 'recount'"),
        (lambda m: m.attention(TEXTS, (2, "a")), "give the number of a text, from 0 to 1"),
        (lambda m: m.attention(TEXTS, "recount"), "give the number of a text, from 0 to 1"),
        (lambda m: m.attention(TEXTS[:1], (0, "recount")), "there is one text; give another one"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(cdlm: LanguageModel, call, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as raised:
        call(cdlm)
    assert "\n" not in str(raised.value)


def test_long_texts_are_cut_around_blanks_and_a_warning_says_how_much(cdlm: LanguageModel) -> None:
    with pytest.warns(TextCut, match=r"text 0: 397 of 903 tokens are not read; storyworld/cdlm reads 512 at"):
        encoded = cdlm.encode(["word " * 900, "b c"])
    assert len(encoded[0].tokens) == 504
    with pytest.warns(TextCut, match="text 0: ") as told:
        filled = cdlm.fill(["word " * 600 + "on [MASK] in Telk", "On Monday in Telk"], pieces=1)
    assert {Path(one.filename) for one in told} == {Path(__file__)}, "at the line of the caller"
    assert [one.category for one in told] == [TextCut, ForeignText]
    near = cdlm.fill(["word " * 40 + "on [MASK] in Telk", "On Monday in Telk"], pieces=1)
    assert {one.word for one in filled[0].words} & {one.word for one in near[0].words}
    with pytest.warns(TextCut):
        cdlm.attention(["word " * 600, "the count"], (0, "word"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", TextCut)
        cdlm.encode(TEXTS)


def test_pictures_keep_hostile_text_inert(cdlm: LanguageModel) -> None:
    texts = [f"{HOSTILE} recount [MASK]", f"{HOSTILE} count"]
    results = [cdlm.encode(texts), cdlm.fill(texts, pieces=1), cdlm.attention(texts, (0, "recount"))]
    for result in results:
        picture = result._repr_html_()
        assert picture.startswith("<div")
        assert "<script" not in picture
