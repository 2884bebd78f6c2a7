"""Masked tokens and masked words."""

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cdlm_lab.encoders.encoder import load_tokenizer
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.masking import CONTINUES as GOES_ON
from cdlm_lab.examples.masking import NO_WORD, STARTS, continuing_pieces, mask_tokens, word_pieces, words_of
from cdlm_lab.examples.tokens import SpecialTokens, from_tokenizer

SPECIAL = SpecialTokens(
    start=0, end=1, cls=2, sep=3, pad=4, mask=5, all_special=frozenset({*range(6), 500}), vocabulary_size=1000
)


def masked(ids, *, seed: int = 0, eligible=None, special: SpecialTokens = SPECIAL, **options):
    ids = np.asarray(ids)
    eligible = np.ones(len(ids), dtype=bool) if eligible is None else np.asarray(eligible)
    return mask_tokens(ids, eligible, generator=np.random.default_rng(seed), special=special, **options)


MANY = np.random.default_rng(7).integers(
    6, 500, size=100_000
)  # for shares within 1% of what BERT's rule says


def test_fifteen_percent_are_drawn_each_by_itself_and_replaced_eighty_ten_ten():
    masked_ids, labels = masked(MANY)
    drawn = labels != -100
    assert drawn.mean() == pytest.approx(0.15, abs=0.01)
    # Independent draws: a neighbour of a drawn token is drawn as often as any other.
    assert drawn[1:][drawn[:-1]].mean() == pytest.approx(0.15, abs=0.01)
    by_mask = (masked_ids == SPECIAL.mask)[drawn]
    unchanged = (masked_ids == MANY)[drawn]
    assert by_mask.mean() == pytest.approx(0.8, abs=0.01)
    # 1 in 993 random words is the word itself, far below the tolerance
    assert unchanged.mean() == pytest.approx(0.1, abs=0.01)
    assert (~by_mask & ~unchanged).mean() == pytest.approx(0.1, abs=0.01)
    assert (masked(MANY, probability=0.4)[1] != -100).mean() == pytest.approx(0.4, abs=0.01)


def test_random_words_come_from_the_whole_vocabulary_but_are_never_special():
    masked_ids, labels = masked(MANY, probability=1.0)
    replaced = masked_ids[(masked_ids != SPECIAL.mask) & (masked_ids != labels)]
    assert not SPECIAL.is_special(replaced).any()
    # the text has ids below 500 only; 499 of the 993 words are above 500
    assert (replaced > 500).mean() == pytest.approx(499 / 993, abs=0.02)


def test_what_is_not_drawn_stays_and_labels_are_the_originals():
    ids = np.arange(6, 306)
    (masked_ids, labels), again, other = (masked(ids, seed=seed) for seed in (3, 3, 6))
    drawn = labels != -100
    assert 0 < drawn.sum() < 300
    assert (masked_ids[~drawn] == ids[~drawn]).all()
    assert (labels[drawn] == ids[drawn]).all()
    assert masked_ids.dtype == labels.dtype == np.int64
    assert (ids == np.arange(6, 306)).all(), "the input was changed"
    assert (again[0] == masked_ids).all()
    assert (again[1] == labels).all()
    assert (other[1] != labels).any()


def test_special_tokens_and_those_not_eligible_are_never_masked():
    ids = np.tile([2, 0, 77, 500, 1, 3, 4, 5], 1000)
    masked_ids, labels = masked(ids, probability=1.0)
    assert (labels.reshape(-1, 8) == [-100, -100, 77, -100, -100, -100, -100, -100]).all()
    special = SPECIAL.is_special(ids)
    assert (masked_ids[special] == ids[special]).all()
    eligible = np.arange(1000) % 2 == 0
    assert ((masked(np.full(1000, 9), eligible=eligible, probability=1.0)[1] != -100) == eligible).all()
    nothing, labels = masked([2, 0, 500, 1, 3], probability=1.0)
    assert nothing.tolist() == [2, 0, 500, 1, 3]
    assert (labels == -100).all()


def test_at_least_one_token_is_masked():
    """At so low a probability no token is drawn, and one is picked uniformly from the eligible ones."""
    counts = sum(masked([2, 0, 50, 51, 52, 1, 3], seed=n, probability=1e-9)[1] != -100 for n in range(600))
    assert counts[[0, 1, 5, 6]].sum() == 0
    assert counts.sum() == 600
    np.testing.assert_allclose(counts[2:5] / 600, 1 / 3, atol=0.08)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eligible": [True]}, r"input_ids \(3,\) and eligible \(1,\) must have the same shape"),
        ({"eligible": [1, 1, 0]}, "eligible is int64; it must be bool"),
        ({"probability": 0.0}, r"the masking probability is 0.0; it must be above 0"),
        ({"probability": 1.5}, r"the masking probability is 1.5"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        masked([7, 8, 9], **arguments)


SIX = SpecialTokens(
    start=0, end=1, cls=2, sep=3, pad=4, mask=5, all_special=frozenset(range(6)), vocabulary_size=30
)
# Ids from 20 go on with the word before; of the special ones what the table says must not count.
CONTINUES = (np.arange(30) >= 20) | (np.arange(30) < 6)
#         [CLS] <doc-s> a  a   b  c  c   c  </doc-s> <doc-s> d   e [SEP]
IDS = np.array([2, 0, 6, 21, 7, 8, 22, 23, 1, 0, 24, 9, 3])
WORDS = [0, 1, 2, 2, 3, 4, 4, 4, 5, 6, 7, 8, 9]


def masked_words(ids=IDS, *, continues=CONTINUES, **options):
    return masked(ids, special=SIX, continues=continues, **options)


def wordpiece(words: list[str]) -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: n for n, word in enumerate([*special, *words])}
    rules = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = {f"{name[1:-1].lower()}_token": name for name in special}
    marks = ["<doc-s>", "</doc-s>"]
    return PreTrainedTokenizerFast(tokenizer_object=rules, extra_special_tokens=marks, **names)


def words_in(tokenizer: PreTrainedTokenizerFast, text: str) -> list[list[str]]:
    ids = np.array(tokenizer(text, add_special_tokens=False)["input_ids"])
    numbers = words_of(ids, continuing_pieces(tokenizer), special=from_tokenizer(tokenizer))
    pieces = np.array(tokenizer.convert_ids_to_tokens(ids.tolist()))
    return [pieces[numbers == number].tolist() for number in range(numbers[-1] + 1)]


def test_numbers_of_words():
    assert words_of(IDS, CONTINUES, special=SIX).tolist() == WORDS
    assert words_of(np.array([21, 22, 6]), CONTINUES, special=SIX).tolist() == [0, 0, 1]
    assert words_of(np.array([], dtype=int), CONTINUES, special=SIX).tolist() == []


def test_words_of_wordpiece(tokenizer):
    made = wordpiece(["un", "##seen", "sea", "##s", "-", "#", "Ġ"])
    table = continuing_pieces(made)
    assert np.flatnonzero(table).tolist() == [6, 8]
    assert len(table) == len(made) == 14
    assert words_in(made, "unseen sea-seas") == [["un", "##seen"], ["sea"], ["-"], ["sea", "##s"]]
    # A word that the vocabulary cannot write is [UNK]: special, and a word by itself.
    assert words_in(made, "sea xx seas") == [["sea"], ["[UNK]"], ["sea", "##s"]]
    made = wordpiece(["un", "@@seen", "##"])
    made.backend_tokenizer.model.continuing_subword_prefix = "@@"
    assert np.flatnonzero(continuing_pieces(made)).tolist() == [6]
    with pytest.raises(ValueError, match=r"is neither WordPiece nor byte-level BPE: .*; draw tokens$"):
        continuing_pieces(tokenizer)


def test_words_of_byte_level_bpe():
    tokenizer = load_tokenizer("tiny")
    result = words_in(tokenizer, "The qzxv,\nTwo\tmen")
    # A blank, a line end and a tab start a word; what follows without one goes on, punctuation too.
    assert ["".join(word) for word in result] == ["ĠThe", "Ġqzxv,", "ĊTwo", "ĉmen"]
    assert result[1] == ["Ġ", "q", "z", "x", "v", ","]
    # At the start of a document no blank is needed.
    ids = np.array([tokenizer.cls_token_id, *tokenizer.convert_tokens_to_ids(["z", "x"])])
    numbers = words_of(ids, continuing_pieces(tokenizer), special=from_tokenizer(tokenizer))
    assert numbers.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("minilm", {"the": STARTS, "##ing": GOES_ON, ",": NO_WORD, "(": NO_WORD, "’": NO_WORD, "7": STARTS}),
        ("tiny", {"ĠThe": STARTS, "ing": GOES_ON, ",": NO_WORD, "Ġ": NO_WORD, "Ċ": NO_WORD, "7": GOES_ON}),
    ],
)
def test_pieces_that_are_no_word(name: str, expected: dict[str, int]):
    tokenizer = load_tokenizer(name)
    kinds, vocabulary = word_pieces(tokenizer), tokenizer.get_vocab()
    assert {piece: kinds[vocabulary[piece]] for piece in expected} == expected


def test_white_space_of_byte_level_bpe():
    decode = decoders.ByteLevel().decode
    signs = [chr(number) for number in range(0x100, 0x180) if decode([chr(number)]) in list(" \t\n\v\f\r")]
    assert len(signs) == 6
    vocabulary = {piece: n for n, piece in enumerate([*signs, *(f"{sign}a" for sign in signs), "a"])}
    rules = Tokenizer(models.BPE(vocabulary, []))
    rules.decoder = decoders.ByteLevel()
    table = continuing_pieces(PreTrainedTokenizerFast(tokenizer_object=rules))
    assert np.flatnonzero(table).tolist() == [12]


def test_all_pieces_of_a_word_are_drawn_or_none():
    seen = set()
    for seed in range(200):
        masked_ids, labels = masked_words(seed=seed, probability=0.4)
        drawn = labels != -100
        assert (labels[drawn] == IDS[drawn]).all()
        assert (masked_ids[~drawn] == IDS[~drawn]).all()
        of_words = [set(drawn[np.array(WORDS) == number]) for number in range(10)]
        assert all(len(states) == 1 for states in of_words)
        seen.add(tuple(states.pop() for states in of_words))
    assert not any(state[special] for state in seen for special in (0, 1, 5, 6, 9))
    assert len(seen) == 2**5 - 1, "every choice of the five words but none"


def test_the_share_of_words_and_of_pieces():
    """Of 40,000 words, every second of three subwords, 15% of each kind are drawn, and so of subwords."""
    drawn = (masked_words(np.tile([6, 21, 22, 7], 20_000), seed=1)[1] != -100).reshape(-1, 4)
    assert (drawn[:, :3].sum(axis=1) % 3 == 0).all()
    assert drawn[:, 0].mean() == pytest.approx(0.15, abs=0.01)
    assert drawn[:, 3].mean() == pytest.approx(0.15, abs=0.01)
    assert drawn[:, 3][drawn[:, 0]].mean() == pytest.approx(0.15, abs=0.02), "words are independent"
    # What becomes of a piece is its own: both pieces of a word become [MASK] in 0.8 * 0.8 of the words.
    ids = np.tile([6, 21], 20_000)
    masked_ids, labels = masked_words(ids, probability=1.0)
    assert (labels == ids).all()
    by_mask = (masked_ids == SIX.mask).reshape(-1, 2)
    assert by_mask.mean() == pytest.approx(0.8, abs=0.01)
    assert by_mask.all(axis=1).mean() == pytest.approx(0.64, abs=0.01)
    # of the 10% that are drawn anew 1 in 24 is the piece itself
    assert (masked_ids == ids).mean() == pytest.approx(0.1 + 0.1 / 24, abs=0.01)


def test_at_least_one_word_is_masked():
    """If no word is drawn, one is picked uniformly from the words, not from the subwords."""
    counts = sum(masked_words(seed=seed, probability=1e-9)[1] != -100 for seed in range(1000))
    np.testing.assert_allclose(counts[[2, 3, 4, 5, 6, 7, 10, 11]] / 1000, 1 / 5, atol=0.04)
    assert counts[[2, 4, 5, 10, 11]].sum() == 1000
    assert (counts[2], counts[5], counts[5]) == (counts[3], counts[6], counts[7])


def test_tokens_are_drawn_as_ever():
    """Each position, special ones too, takes one number of the generator; then replacements are drawn."""
    _, labels = masked_words(seed=11, continues=None, probability=0.5)
    numbers = np.random.default_rng(11).random(len(IDS))
    assert ((labels != -100) == (~SIX.is_special(IDS) & (numbers < 0.5))).all()
    ids = np.arange(6, 16)
    _, labels = masked_words(ids, seed=11, continues=None, probability=1e-9)
    generator = np.random.default_rng(11)
    generator.random(len(ids))
    assert np.flatnonzero(labels != -100).tolist() == [generator.choice(np.arange(10))]


def test_examples_with_whole_words(forty, special):
    """In the forty clusters, pretend that `w0` to `w9` continue a word: their documents are one word each."""
    continues = np.zeros(special.vocabulary_size, dtype=bool)
    continues[5:15] = True
    choices = {"corpus": forty, "special": special, "max_length": 64, "shuffle": False}
    tokens, words = CrossDocumentExamples(**choices), CrossDocumentExamples(**choices, continues=continues)
    parts = 0
    for row in range(40):
        example, plain = words.describe(row), tokens.describe(row)
        assert (example.packed.input_ids == plain.packed.input_ids).all()
        if row >= 10:
            assert (example.labels == plain.labels).all()
            continue
        for number in example.packed.packed_documents:
            inside = (example.packed.document == number) & ~example.packed.is_special
            assert len(set(example.masked[inside])) == 1
            parts += len(set(plain.masked[inside]))
    assert parts > 40, "of tokens, some of a document are masked and some are not"
