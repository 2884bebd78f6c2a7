"""Questions with candidates, and claims with evidence, as examples for models that read several candidates
jointly or one at a time (Di Liello et al. 2022, "MSPP", sections 3.1 to 3.3), here with k = 2:

    [CLS] who won ? [SEP] Ada won the race . [SEP] Bo came second .

- Each sentence s_0 ... s_k is truncated to L tokens, its front token included; token types are 0 ... k. The
  paper pads each to L. Here no padding is written: `strided` positions are the paper's, token j of sentence i
  at i * L + j; `compact` ones have no gaps, as RoBERTa's in the released code, since it skips padding.
- A question with n candidates gives ceil(n / k) examples, which together have every candidate once; k = 1 is
  the pairwise cross-encoder. For training candidates are shuffled anew in each pass; for testing their order
  is fixed by a hash of their texts, independent of labels and of the order in the file. All groups are
  ranked together by score; or a joint model reranks the first k of a pairwise one (Tables 2 and 7).
- A claim gives one example, with as much of its evidence as there is room for, in the order of retrieval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.records import CandidateSet, EvidencedClaim
from cdlm_lab.data.text_profile import texts_of_record
from cdlm_lab.examples.collate import check_keys, collated, padded
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.examples.passes import Passes
from cdlm_lab.examples.tokens import EncodedById, SpecialTokens, encode_pieces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


ABSENT = -1
_KEYS, _LABELS = ("input_ids", "token_type_ids", "position_ids", "starts"), ("labels", "mlm_labels")
_CANDIDATES, _ITEMS = range(2)  # independent random streams of one seed


def fixed_order(texts: Sequence[str], *, key: str) -> np.ndarray:
    """Order texts by the SHA-256 of the key and the text: int64 (texts,), indices of the texts in their new
    order; equal texts keep their order. `key`: of the question, e.g. its id, so that a text has another place
    in another question."""
    digests = [
        # "surrogatepass", because JSON can hold lone surrogates, which UTF-8 cannot encode.
        hashlib.sha256(f"{key}\0{text}".encode("utf-8", "surrogatepass")).digest()
        for text in texts
    ]
    return np.array(sorted(range(len(texts)), key=digests.__getitem__), dtype=np.int64)


def chunks(order: np.ndarray, *, k: int) -> list[np.ndarray]:
    """Split an order into groups of k; the last has the rest.

    Example:
        >>> [group.tolist() for group in chunks(np.array([2, 0, 1]), k=2)]
        [[2, 0], [1]]
    """
    return [order[first : first + k] for first in range(0, len(order), k)]


def top_k(scores: np.ndarray, order: np.ndarray, *, k: int) -> np.ndarray:
    """The k candidates with the highest `scores` (n,), best first, int64 (at most k,); ties are broken by
    their place in `order`, int (n,), as `fixed_order` returns it."""
    return order[np.argsort(-scores[order], kind="stable")][:k]


def cascade_scores(pairwise: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """Scores for one ranking of a question's candidates when a joint model has read only some of them (nan =
    not read): whole numbers, float64 (n,). Candidates read by the joint model come first, by their `joint`
    scores, then the others by their `pairwise` ones. Ties among either remain ties.

    Example:
        >>> cascade_scores(np.array([0.9, 0.8, 0.2, 0.2]), np.array([-1, 3, np.nan, np.nan])).tolist()
        [3.0, 5.0, 1.0, 1.0]
    """
    again = ~np.isnan(joint)
    # Ranks, not sums of scores, so that rounding can neither create nor break a tie.
    values, places = np.unique(np.where(again, joint, pairwise), return_inverse=True)
    return (places + len(values) * again).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLayout:
    """How many sentences a sequence has, and at which positions."""

    sentences: int  # k + 1: the question or claim and k candidates
    length: int = 64  # L, maximum tokens of a sentence, its front token included
    positions: str = "strided"  # `strided` or `compact`

    @property
    def candidates(self) -> int:
        """k, the maximum number of candidates in a sequence."""
        return self.sentences - 1

    @property
    def tokens(self) -> int:
        """L(k + 1), the maximum number of tokens in a sequence; all positions are below it."""
        return self.sentences * self.length


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointSequence:
    """A question or claim and its candidates as one sequence."""

    input_ids: np.ndarray  # int64 (tokens,)
    token_type_ids: np.ndarray  # int64 (tokens,), number of the sentence, 0 ... k
    position_ids: np.ndarray  # int64 (tokens,), from 0
    starts: np.ndarray  # int64 (k + 1,), position of each sentence's front token; -1 = absent
    cut: np.ndarray  # int64 (k + 1,), number of subword tokens truncated from each sentence

    @property
    def sentence(self) -> np.ndarray:
        """int64 (tokens,), number of each token's sentence, front tokens included; equals its token type."""
        return self.token_type_ids

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The arrays that a model reads, by name."""
        return {key: getattr(self, key) for key in _KEYS}


def joint_sequence(
    pieces: Sequence[Sequence[int] | np.ndarray | None], *, layout: JointLayout, special: SpecialTokens
) -> JointSequence:
    """Write k + 1 sentences into one sequence, `[CLS]` in front of the first, `[SEP]` in front of others.

    `pieces`: ids of each sentence without special tokens; the question or claim, then k candidates. None =
    absent: it has no tokens, and the others keep their numbers. An empty sentence has only its front token.
    """
    room = layout.length - 1
    fronts = [special.cls, *[special.sep] * layout.candidates]
    texts = [
        np.array([] if one is None else [front, *one[:room]], dtype=np.int64)
        for front, one in zip(fronts, pieces, strict=True)
    ]
    lengths = np.array([len(text) for text in texts])  # (k + 1,)
    starts = lengths.cumsum() - lengths
    sentence = np.repeat(np.arange(layout.sentences), lengths)
    positions = np.arange(lengths.sum())
    if layout.positions == "strided":
        positions += (sentence * layout.length) - starts[sentence]
    return JointSequence(
        input_ids=np.concatenate(texts),
        token_type_ids=sentence,
        position_ids=positions,
        starts=np.where(lengths > 0, starts, ABSENT),
        cut=np.array([0 if one is None else max(0, len(one) - room) for one in pieces]),
    )


class EncodedTexts(EncodedById[CandidateSet | EvidencedClaim, list[np.ndarray]]):
    """Mapping from the id of a question or claim to a list of int32 (pieces,): it, then each candidate or
    sentence of evidence."""

    def __init__(
        self, records: Iterable[CandidateSet | EvidencedClaim], tokenizer: PreTrainedTokenizerBase
    ) -> None:
        super().__init__(records, partial(_pieces, tokenizer=tokenizer), kind="records")


def _pieces(one: CandidateSet | EvidencedClaim, tokenizer: PreTrainedTokenizerBase) -> list[np.ndarray]:
    return encode_pieces(texts_of_record(one), tokenizer)


@dataclass(frozen=True, kw_only=True, eq=False)
class JointExamples:
    """Map-style dataset of questions with groups of candidates, or of claims with their evidence; read it in
    order, it is already shuffled.

    `examples[i]` is a dict of `input_ids`, `token_type_ids`, `position_ids` int64 (tokens,), `starts` int64
    (sentences,), as in `JointSequence`, and `labels`: of candidates int64 (sentences - 1,), 1 = right, 0 =
    wrong, -100 = absent; of a claim int64 (), an index into CLAIM_LABELS, -100 = unknown. A claim without
    evidence is read alone.
    """

    records: Sequence[CandidateSet | EvidencedClaim]
    encoded: Mapping[str, Sequence[np.ndarray]]  # by id; each is encoded when first needed
    layout: JointLayout
    special: SpecialTokens
    seed: int = 0
    size: int | None = None  # examples in all, over as many passes as that takes; None = one pass
    # True = another order in each pass, of questions, their candidates and groups, or of claims, whose
    # evidence stays in order; False = one by one, candidates in a `fixed_order` of the seed, for testing.
    shuffle: bool = True
    key: str = ""  # of the `fixed_order`; "" = the id of each question
    _groups: np.ndarray = field(init=False, repr=False)  # int64 (groups, 2), number of record, and in it
    _passes: Passes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counts = []
        for one in self.records:
            is_claim = isinstance(one, EvidencedClaim)
            if not is_claim and not one.candidates:
                raise ValueError(f"question {one.id} has no candidates; leave it out")
            counts.append(1 if is_claim else -(-len(one.candidates) // self.layout.candidates))
        groups = [(number, group) for number, count in enumerate(counts) for group in range(count)]
        object.__setattr__(self, "_groups", np.array(groups, dtype=np.int64))
        form = {"seed": self.seed, "size": self.size, "shuffle": self.shuffle}
        object.__setattr__(self, "_passes", Passes(items=len(groups), stream=_ITEMS, **form))

    def __len__(self) -> int:
        return len(self._passes)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        number, members = self.owner(index)
        one = self.records[number]
        if isinstance(one, EvidencedClaim):
            labels = np.array(NOT_MASKED if one.label is None else LABELS.index(one.label), dtype=np.int64)
        else:
            labels = np.full(self.layout.candidates, NOT_MASKED)
            labels[: len(members)] = np.array(one.correct)[members]
        return self.describe(index).inputs | {"labels": labels}

    def describe(self, index: int) -> JointSequence:
        """The sequence of one example, with the number of tokens truncated from it."""
        pieces = self._pieces(index)
        absent = [None] * (self.layout.sentences - len(pieces))
        return joint_sequence([*pieces, *absent], layout=self.layout, special=self.special)

    def length_of(self, index: int) -> int:
        """Number of tokens of an example, for batches of similar lengths."""
        return sum(min(len(one) + 1, self.layout.length) for one in self._pieces(index))

    def owner(self, index: int) -> tuple[int, np.ndarray]:
        """The number of an example's record, and int64 (at most k,) the numbers of its candidates or pieces
        of evidence, in the order of the sequence."""
        epoch, item = self._passes.item(index)
        number, group = self._groups[item].tolist()
        one = self.records[number]
        if isinstance(one, EvidencedClaim):
            return number, np.arange(min(len(one.evidence), self.layout.candidates))
        if self.shuffle:
            order = self._passes.generator(_CANDIDATES, epoch, number).permutation(len(one.candidates))
        else:
            key = self.key or one.id
            order = fixed_order(one.candidates, key=f"{key}\0{self.seed}" if self.seed else key)
        return number, chunks(order, k=self.layout.candidates)[group]

    def _pieces(self, index: int) -> list[np.ndarray]:
        """Token ids of each sentence present, the question or claim first."""
        number, members = self.owner(index)
        encoded = self.encoded[self.records[number].id]
        return [encoded[0], *(encoded[1 + member] for member in members)]


@dataclass(frozen=True, slots=True)
class JointCollate:
    """Pads examples and stacks them into what a joint model's `forward` takes: `input_ids` with
    `pad_token_id`, labels of tokens with -100, the rest with 0.

    Example, for `JointCollate(pad_token_id=0)`:

        [{"input_ids": [2, 7, 3, 8], "position_ids": [0, 1, 4, 5], "starts": [0, 2], "labels": [1], ...},
         {"input_ids": [2, 7, 3],    "position_ids": [0, 1, 4],    "starts": [0, 2], "labels": [0], ...}]
        gives
        {"input_ids":      [[2, 7, 3, 8], [2, 7, 3, 0]],
         "attention_mask": [[1, 1, 1, 1], [1, 1, 1, 0]],
         "position_ids":   [[0, 1, 4, 5], [0, 1, 4, 0]],
         "starts":         [[0, 2], [0, 2]],
         "labels":         [[1], [0]], ...}
    """

    pad_token_id: int

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, torch.Tensor]:
        """Pad and stack examples of one layout; `mlm_labels` (tokens,) may be in all of them."""
        fill = {"input_ids": self.pad_token_id, "mlm_labels": NOT_MASKED}
        return collated(examples, needed=_KEYS, optional=_LABELS, fill=fill)


@dataclass(frozen=True, slots=True)
class PairedClaimCollate:
    """Splits the examples of claims into pairs of the claim and one piece of evidence, each a row by
    itself, for a model that reads them one at a time and pools them."""

    pad_token_id: int  # padding of `input_ids`
    layout: JointLayout  # of the examples; a row looks as in a layout with one candidate

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, torch.Tensor]:
        """The same keys with (pairs, ...) for (batch, ...) and two sentences; `labels`, if given: (claims,);
        `claim`: (pairs,), index of the pair's claim among the examples, ascending. A claim without evidence
        has one row, by itself. All int64."""
        check_keys(examples, needed=_KEYS, optional=_LABELS)
        rows, claims = [], []
        for claim, example in enumerate(examples):
            evidence = 1 + np.flatnonzero(example["starts"][1:] != ABSENT)
            for number in evidence if len(evidence) else [0]:
                rows.append(self._pair(example, number))
                claims.append(claim)
        batch = JointCollate(self.pad_token_id)(rows) | {"claim": torch.tensor(claims)}
        if "labels" in examples[0]:
            batch["labels"] = padded([example["labels"] for example in examples])
        return batch

    def _pair(self, example: Mapping[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
        """The claim and sentence `number` of an example; the claim alone for 0."""
        kept = np.isin(example["token_type_ids"], [0, number])
        second = example["token_type_ids"][kept] > 0
        positions = np.arange(len(second))
        if self.layout.positions == "strided":
            positions = example["position_ids"][kept] - second * (number - 1) * self.layout.length
        return {
            "input_ids": example["input_ids"][kept],
            "token_type_ids": second.astype(np.int64),
            "position_ids": positions,
            "starts": np.array([0, second.argmax() if number else ABSENT]),
        }
