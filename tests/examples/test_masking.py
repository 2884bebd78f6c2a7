"""Masked tokens and masked words."""

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.masking import continuing_pieces, mask_tokens, words_of
from cdlm_lab.examples.tokens import SpecialTokens, from_tokenizer
from cdlm_lab.models.encoder import load_tokenizer

SPECIAL = SpecialTokens(
    start=0, end=1, cls=2, sep=3, pad=4, mask=5, all_special=frozenset({*range(6), 500}), vocabulary_size=1000
)


def masked(ids, *, seed: int = 0, eligible=None, probability: float = 0.15):
    ids = np.asarray(ids)
    eligible = np.ones(len(ids), dtype=bool) if eligible is None else np.asarray(eligible)
    return mask_tokens(
        ids, eligible, generator=np.random.default_rng(seed), special=SPECIAL, probability=probability
    )


class TestStatistics:
    """100,000 tokens; shares within 1% of what BERT's rule says."""

    ids = np.random.default_rng(7).integers(6, 500, size=100_000)

    def test_fifteen_percent_are_drawn_each_by_itself(self):
        _, labels = masked(self.ids)
        drawn = labels != -100
        assert drawn.mean() == pytest.approx(0.15, abs=0.01)
        # Independent draws: a neighbour of a drawn token is drawn as often as any other.
        assert drawn[1:][drawn[:-1]].mean() == pytest.approx(0.15, abs=0.01)

    def test_eighty_ten_ten(self):
        masked_ids, labels = masked(self.ids)
        drawn = labels != -100
        by_mask = (masked_ids == SPECIAL.mask) & drawn
        unchanged = (masked_ids == self.ids) & drawn
        by_random = drawn & ~by_mask & ~unchanged
        count = drawn.sum()
        assert by_mask.sum() / count == pytest.approx(0.8, abs=0.01)
        # 1 in 993 random words is the word itself, far below the tolerance
        assert unchanged.sum() / count == pytest.approx(0.1, abs=0.01)
        assert by_random.sum() / count == pytest.approx(0.1, abs=0.01)

    def test_random_words_come_from_the_whole_vocabulary_but_are_never_special(self):
        masked_ids, labels = masked(self.ids, probability=1.0)
        replaced = masked_ids[(masked_ids != SPECIAL.mask) & (masked_ids != labels)]
        assert not SPECIAL.is_special(replaced).any()
        # the text has ids below 500 only; 499 of the 993 words are above 500
        assert (replaced > 500).mean() == pytest.approx(499 / 993, abs=0.02)

    def test_another_probability(self):
        _, labels = masked(self.ids, probability=0.4)
        assert (labels != -100).mean() == pytest.approx(0.4, abs=0.01)


def test_what_is_not_drawn_stays_and_labels_are_the_originals():
    ids = np.arange(6, 306)
    masked_ids, labels = masked(ids, seed=3)
    drawn = labels != -100
    assert 0 < drawn.sum() < 300
    assert (masked_ids[~drawn] == ids[~drawn]).all()
    assert (labels[drawn] == ids[drawn]).all()
    assert masked_ids.dtype == labels.dtype == np.int64
    assert (ids == np.arange(6, 306)).all(), "the input was changed"


def test_special_tokens_are_never_masked_even_when_called_eligible():
    ids = np.tile([2, 0, 77, 500, 1, 3, 4, 5], 1000)
    masked_ids, labels = masked(ids, probability=1.0)
    assert (labels.reshape(-1, 8) == [-100, -100, 77, -100, -100, -100, -100, -100]).all()
    special = SPECIAL.is_special(ids)
    assert (masked_ids[special] == ids[special]).all()


def test_only_eligible_tokens_are_masked():
    eligible = np.arange(1000) % 2 == 0
    _, labels = masked(np.full(1000, 9), eligible=eligible, probability=1.0)
    assert ((labels != -100) == eligible).all()


def test_at_least_one_token_is_masked():
    """At so low a probability chance draws nothing, and the one token is picked evenly from the eligible."""
    counts = np.zeros(7)
    for seed in range(600):
        _, labels = masked([2, 0, 50, 51, 52, 1, 3], seed=seed, probability=1e-9)
        counts += labels != -100
    assert counts[[0, 1, 5, 6]].sum() == 0
    assert counts.sum() == 600
    np.testing.assert_allclose(counts[2:5] / 600, 1 / 3, atol=0.08)


def test_nothing_eligible_masks_nothing():
    masked_ids, labels = masked([2, 0, 500, 1, 3], probability=1.0)
    assert masked_ids.tolist() == [2, 0, 500, 1, 3]
    assert (labels == -100).all()


def test_the_same_generator_state_gives_the_same_masks():
    ids = np.arange(6, 406)
    first, second, other = masked(ids, seed=5), masked(ids, seed=5), masked(ids, seed=6)
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()
    assert (first[1] != other[1]).any()


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


def masked_words(ids=IDS, *, seed: int = 0, eligible=None, probability: float = 0.15, continues=CONTINUES):
    ids = np.asarray(ids)
    return mask_tokens(
        ids,
        np.ones(len(ids), dtype=bool) if eligible is None else eligible,
        generator=np.random.default_rng(seed),
        special=SIX,
        probability=probability,
        continues=continues,
    )


def wordpiece(words: list[str]) -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    rules = Tokenizer(
        models.WordPiece({word: n for n, word in enumerate([*special, *words])}, unk_token="[UNK]")
    )
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return PreTrainedTokenizerFast(
        tokenizer_object=rules,
        **{f"{name[1:-1].lower()}_token": name for name in special},
        extra_special_tokens=["<doc-s>", "</doc-s>"],
    )


def words_in(tokenizer: PreTrainedTokenizerFast, text: str) -> list[list[str]]:
    ids = np.array(tokenizer(text, add_special_tokens=False)["input_ids"])
    numbers = words_of(ids, continuing_pieces(tokenizer), special=from_tokenizer(tokenizer))
    pieces = np.array(tokenizer.convert_ids_to_tokens(ids.tolist()))
    return [pieces[numbers == number].tolist() for number in range(numbers[-1] + 1)]


class TestWords:
    def test_numbers(self):
        assert words_of(IDS, CONTINUES, special=SIX).tolist() == WORDS
        assert words_of(np.array([21, 22, 6]), CONTINUES, special=SIX).tolist() == [0, 0, 1]
        assert words_of(np.array([], dtype=int), CONTINUES, special=SIX).tolist() == []

    def test_of_wordpiece(self):
        tokenizer = wordpiece(["un", "##seen", "sea", "##s", "-", "#", "Ġ"])
        table = continuing_pieces(tokenizer)
        assert np.flatnonzero(table).tolist() == [6, 8]
        assert len(table) == len(tokenizer) == 14
        assert words_in(tokenizer, "unseen sea-seas") == [["un", "##seen"], ["sea"], ["-"], ["sea", "##s"]]
        # A word that the vocabulary cannot write is [UNK]: special, and a word by itself.
        assert words_in(tokenizer, "sea xx seas") == [["sea"], ["[UNK]"], ["sea", "##s"]]

    def test_another_prefix_of_wordpiece(self):
        tokenizer = wordpiece(["un", "@@seen", "##"])
        tokenizer.backend_tokenizer.model.continuing_subword_prefix = "@@"
        assert np.flatnonzero(continuing_pieces(tokenizer)).tolist() == [6]

    def test_of_byte_level_bpe(self):
        tokenizer = load_tokenizer("tiny")
        result = words_in(tokenizer, "The qzxv,\nTwo\tmen")
        # A blank, a line end and a tab start a word; what follows without one goes on, punctuation too.
        assert ["".join(word) for word in result] == ["ĠThe", "Ġqzxv,", "ĊTwo", "ĉmen"]
        assert result[1] == ["Ġ", "q", "z", "x", "v", ","]
        # At the start of a document no blank is needed.
        ids = np.array([tokenizer.cls_token_id, *tokenizer.convert_tokens_to_ids(["z", "x"])])
        table = continuing_pieces(tokenizer)
        assert words_of(ids, table, special=from_tokenizer(tokenizer)).tolist() == [0, 1, 1]

    def test_white_space_of_byte_level_bpe(self):
        signs = [
            chr(number)
            for number in range(0x100, 0x180)
            if decoders.ByteLevel().decode([chr(number)]) in list(" \t\n\v\f\r")
        ]
        assert len(signs) == 6
        vocabulary = {piece: n for n, piece in enumerate([*signs, *(f"{sign}a" for sign in signs), "a"])}
        rules = Tokenizer(models.BPE(vocabulary, []))
        rules.decoder = decoders.ByteLevel()
        table = continuing_pieces(PreTrainedTokenizerFast(tokenizer_object=rules))
        assert np.flatnonzero(table).tolist() == [12]

    def test_of_neither(self, tokenizer):
        with pytest.raises(ValueError, match=r"is neither WordPiece nor byte-level BPE: .*; draw tokens$"):
            continuing_pieces(tokenizer)


class TestMasks:
    def test_all_pieces_of_a_word_or_none(self):
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

    def test_the_share_of_words_and_of_pieces(self):
        """40,000 words, every other of three pieces: 15% of both kinds, so 15% of the pieces."""
        ids = np.tile([6, 21, 22, 7], 20_000)
        _, labels = masked_words(ids, seed=1)
        drawn = (labels != -100).reshape(-1, 4)
        assert (drawn[:, :3].sum(axis=1) % 3 == 0).all()
        assert drawn[:, 0].mean() == pytest.approx(0.15, abs=0.01)
        assert drawn[:, 3].mean() == pytest.approx(0.15, abs=0.01)
        assert drawn[:, 3][drawn[:, 0]].mean() == pytest.approx(0.15, abs=0.02), "words are independent"

    def test_the_fate_is_each_pieces_own(self):
        """80/10/10 of the pieces; both pieces of a word become [MASK] in 0.8 * 0.8 of the words."""
        ids = np.tile([6, 21], 20_000)
        masked_ids, labels = masked_words(ids, probability=1.0)
        assert (labels == ids).all()
        by_mask = (masked_ids == SIX.mask).reshape(-1, 2)
        assert by_mask.mean() == pytest.approx(0.8, abs=0.01)
        assert by_mask.all(axis=1).mean() == pytest.approx(0.64, abs=0.01)
        # of the 10% that are drawn anew 1 in 24 is the piece itself
        assert (masked_ids == ids).mean() == pytest.approx(0.1 + 0.1 / 24, abs=0.01)

    def test_at_least_one_word(self):
        """Chance draws nothing; the one word is picked evenly from the words, not from the pieces."""
        counts = np.zeros(len(IDS))
        for seed in range(1000):
            counts += masked_words(seed=seed, probability=1e-9)[1] != -100
        np.testing.assert_allclose(counts[[2, 3, 4, 5, 6, 7, 10, 11]] / 1000, 1 / 5, atol=0.04)
        assert counts[[2, 4, 5, 10, 11]].sum() == 1000
        assert (counts[2], counts[5], counts[5]) == (counts[3], counts[6], counts[7])

    def test_pieces_that_may_not_be_drawn_stay_out(self):
        eligible = np.arange(len(IDS)) != 6
        assert (masked_words(probability=1.0, eligible=eligible)[1] != -100).tolist() == [
            number in (2, 3, 4, 5, 7, 10, 11) for number in range(13)
        ]
        nothing = masked_words(probability=1.0, eligible=np.zeros(len(IDS), dtype=bool))
        assert nothing[0].tolist() == IDS.tolist()
        assert (nothing[1] == -100).all()

    def test_words_of_one_piece_are_drawn_as_tokens_are(self):
        ids = np.random.default_rng(3).integers(6, 20, size=500)
        for seed, probability in ((0, 0.15), (1, 1e-9)):
            words = masked_words(ids, seed=seed, probability=probability)
            tokens = masked_words(ids, seed=seed, probability=probability, continues=None)
            np.testing.assert_array_equal(words, tokens)


def test_tokens_are_drawn_as_ever():
    """One number of the generator for each place, special ones too; then what becomes of it."""
    _, labels = masked_words(seed=11, continues=None, probability=0.5)
    numbers = np.random.default_rng(11).random(len(IDS))
    assert ((labels != -100) == (~SIX.is_special(IDS) & (numbers < 0.5))).all()
    ids = np.arange(6, 16)
    _, labels = masked_words(ids, seed=11, continues=None, probability=1e-9)
    generator = np.random.default_rng(11)
    generator.random(len(ids))
    assert np.flatnonzero(labels != -100).tolist() == [generator.choice(np.arange(10))]


def test_examples_with_whole_words(forty, special):
    """In the forty clusters, say that `w0` to `w9` go on with a word: their documents are one word each."""
    continues = np.zeros(special.vocabulary_size, dtype=bool)
    continues[5:15] = True
    choices = {"corpus": forty, "special": special, "max_length": 64, "shuffle": False}
    tokens, words = CrossDocumentExamples(**choices), CrossDocumentExamples(**choices, continues=continues)
    parts = 0
    for row in range(40):
        example = words.describe(row)
        assert (example.packed.input_ids == tokens.describe(row).packed.input_ids).all()
        if row < 10:
            for number in example.packed.packed_documents:
                inside = (example.packed.document == number) & ~example.packed.is_special
                assert len(set(example.masked[inside])) == 1
                parts += len(set(tokens.describe(row).masked[inside]))
        else:
            assert (example.labels == tokens.describe(row).labels).all()
    assert parts > 40, "of tokens, some of a document are masked and some are not"
