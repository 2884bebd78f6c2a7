"""Questions with candidates, and claims with evidence, as examples of models that read several candidates
jointly or one at a time, and batches of such examples (Di Liello et al. 2022, "MSPP", sections 3.1 to 3.3).

- A question with n candidates gives ceil(n / k) examples, each the question and up to k candidates; together
  they have every candidate once. k = 1 is the pairwise cross-encoder.
- A claim gives one example, with as much of its evidence as the layout has room for, in the order in which it
  was retrieved. What is beyond is not read, where the released code makes further claims of it.

Which candidates are in example i, and where, is a pure function of (seed, pass, i).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.data.records import CandidateSet

from .candidate_groups import Passes, chunks, fixed_order, shuffled_order
from .joint_sequence import ABSENT, JointLayout, JointSequence, joint_sequence
from .special_tokens import SpecialTokens

NO_LABEL = -100  # what PyTorch's cross entropy ignores


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sequences:
    """What questions and claims share: which item an example is, and its sequence."""

    encoded: Mapping[str, Sequence[np.ndarray]]
    layout: JointLayout
    special: SpecialTokens
    seed: int = 0
    size: int | None = None
    shuffle: bool = True
    _passes: Passes = field(init=False, repr=False)

    def __len__(self) -> int:
        return len(self._passes)

    def describe(self, index: int) -> JointSequence:
        """The sequence of one example, with what was left out of it; errors as of `owner`."""
        pieces = self._pieces(index)
        absent = [None] * (self.layout.sentences - len(pieces))
        return joint_sequence([*pieces, *absent], layout=self.layout, special=self.special)

    def length_of(self, index: int) -> int:
        """Tokens of an example, for batches of like lengths; errors as of `owner`."""
        return sum(min(len(one) + 1, self.layout.length) for one in self._pieces(index))

    def _pass_over(self, items: int) -> None:
        passes = Passes(items=items, seed=self.seed, size=self.size, shuffle=self.shuffle)
        object.__setattr__(self, "_passes", passes)

    def _pieces(self, index: int) -> Sequence[np.ndarray]:
        """Of each sentence that is there, the question or claim first."""
        raise NotImplementedError

    def _example(self, index: int, labels: np.ndarray) -> dict[str, np.ndarray]:
        sequence = self.describe(index)
        return {
            "input_ids": sequence.input_ids,
            "token_type_ids": sequence.token_type_ids,
            "position_ids": sequence.position_ids,
            "starts": sequence.starts,
            "labels": labels,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateExamples(_Sequences):
    """Map-style dataset of questions with groups of candidates; read it in order, it is shuffled already.

    `examples[i]` is a dict of `input_ids`, `token_type_ids`, `position_ids` int64 (tokens,), `starts` int64
    (sentences,), see `JointSequence`, and `labels` int64 (sentences - 1,), 1 = right, 0 = wrong, -100 =
    absent.

    Attributes:
        sets: questions with their candidates.
        encoded: the same by id; `EncodedCandidates` encodes each once, when it is first needed.
        layout: of a sequence.
        special: ids of the special tokens.
        k: most candidates of a group; None = as many as the layout has.
        seed, size: see `Passes`.
        shuffle: True = in each pass another order of groups, and of the candidates of each question before
            they are put into groups. False = question by question, candidates in `fixed_order`, for testing.

    Raises:
        ValueError: no questions; one without candidates; `k` outside the layout; seed or size as of `Passes`.
    """

    sets: Sequence[CandidateSet]
    k: int | None = None
    _groups: np.ndarray = field(init=False, repr=False)  # int64 (groups, 2), number of the set, and in it

    def __post_init__(self) -> None:
        if not 1 <= self._k <= self.layout.candidates:
            raise ValueError(f"k is {self.k}; it must be 1 to {self.layout.candidates}, as of the layout")
        for one in self.sets:
            if not one.candidates:
                raise ValueError(f"question {one.id} has no candidates; leave it out")
        counts = [-(-len(one.candidates) // self._k) for one in self.sets]
        groups = [(number, group) for number, count in enumerate(counts) for group in range(count)]
        object.__setattr__(self, "_groups", np.array(groups, dtype=np.int64))
        self._pass_over(len(groups))

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        number, candidates = self.owner(index)
        labels = np.full(self.layout.candidates, NO_LABEL)
        labels[: len(candidates)] = np.array(self.sets[number].correct)[candidates]
        return self._example(index, labels)

    def owner(self, index: int) -> tuple[int, np.ndarray]:
        """What an example is made of.

        Returns:
            The number of the set, and int64 (at most k,) numbers of its candidates, in the order of the
            sequence.

        Raises:
            IndexError: an index below 0 or not below the number of examples.
        """
        epoch, item = self._passes.item(index)
        number, group = self._groups[item].tolist()
        one = self.sets[number]
        if self.shuffle:
            order = shuffled_order(len(one.candidates), seed=self.seed, epoch=epoch, index=number)
        else:
            order = fixed_order(one.candidates, key=one.id)
        return number, chunks(order, k=self._k)[group]

    @property
    def _k(self) -> int:
        return self.layout.candidates if self.k is None else self.k

    def _pieces(self, index: int) -> list[np.ndarray]:
        """Of the question and of the candidates of one example."""
        number, candidates = self.owner(index)
        encoded = self.encoded[self.sets[number].id]
        return [encoded[0], *(encoded[1 + candidate] for candidate in candidates)]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClaimExamples(_Sequences):
    """Map-style dataset of claims with their evidence; read it in order, it is shuffled already.

    `examples[i]` is a dict as of `CandidateExamples`, but with `labels` int64 (), the number in
    `data.claims.LABELS`, -100 = not known. A claim without evidence is read alone.

    Attributes:
        claims: with their evidence.
        encoded: the same by id; `EncodedClaims` encodes each once, when it is first needed.
        layout: of a sequence.
        special: ids of the special tokens.
        seed, size: see `Passes`.
        shuffle: True = another order of claims in each pass; False = their own, for testing. Evidence stays
            in order.

    Raises:
        ValueError: no claims; seed or size as of `Passes`.
    """

    claims: Sequence[EvidencedClaim]

    def __post_init__(self) -> None:
        self._pass_over(len(self.claims))

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        label = self.claims[self.owner(index)].label
        labels = np.array(NO_LABEL if label is None else LABELS.index(label), dtype=np.int64)
        return self._example(index, labels)

    def owner(self, index: int) -> int:
        """The number of the claim of an example.

        Raises:
            IndexError: an index below 0 or not below the number of examples.
        """
        return self._passes.item(index)[1]

    def _pieces(self, index: int) -> Sequence[np.ndarray]:
        """Of the claim and of the evidence that is read."""
        return self.encoded[self.claims[self.owner(index)].id][: self.layout.sentences]


@dataclass(frozen=True, slots=True)
class JointCollate:
    """Pads examples and stacks them into what a joint model's `forward` takes; give it to a `Trainer` or
    `DataLoader` as it is.

    Attributes:
        pad_token_id: fills `input_ids`; token types, positions and the mask are filled with 0, labels of
            tokens with -100.

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
        """Pad and stack.

        Args:
            examples: of one layout; see `CandidateExamples` and `ClaimExamples`. `mlm_labels` (tokens,) may
                be in all of them.

        Returns:
            `input_ids`, `attention_mask` (1 = token, 0 = padding), `token_type_ids`, `position_ids`, and if
            there `mlm_labels`: (batch, longest); `starts`: (batch, sentences); `labels`, if there: (batch,
            candidates) or (batch,). All int64.

        Raises:
            ValueError: no examples; different or other keys.
        """
        _check_keys(examples)
        fill = _FILL | {"input_ids": self.pad_token_id}
        batch = {key: _stacked([one[key] for one in examples], fill=fill.get(key)) for key in examples[0]}
        ones = [np.ones(len(one["input_ids"]), dtype=np.int64) for one in examples]
        return batch | {"attention_mask": _stacked(ones, fill=0)}


@dataclass(frozen=True, slots=True)
class PairedClaimCollate:
    """Takes the examples of `ClaimExamples` apart into pairs of the claim and one evidence, each a row by
    itself, for a model that reads them one at a time and pools them.

    Attributes:
        pad_token_id: as of `JointCollate`.
        layout: of the examples. A row is what it would be with one candidate in the layout.
    """

    pad_token_id: int
    layout: JointLayout

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, torch.Tensor]:
        """Take apart, pad and stack.

        Returns:
            As of `JointCollate`, with (pairs, ...) for (batch, ...) and two sentences; `labels`, if there:
            (claims,); `claim`: (pairs,), number of the pair's claim among the examples, ascending. A claim
            without evidence has one row, in which it stands alone. All int64.

        Raises:
            ValueError: as of `JointCollate`.
        """
        _check_keys(examples)
        pairs = [self._pairs_of(example) for example in examples]
        batch = JointCollate(self.pad_token_id)([row for rows in pairs for row in rows])
        batch["claim"] = torch.repeat_interleave(torch.tensor([len(rows) for rows in pairs]))
        if "labels" in examples[0]:
            batch["labels"] = _stacked([example["labels"] for example in examples], fill=None)
        return batch

    def _pairs_of(self, example: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        evidence = 1 + np.flatnonzero(example["starts"][1:] != ABSENT)
        return [self._pair(example, number) for number in (evidence if len(evidence) else [0])]

    def _pair(self, example: Mapping[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
        """The claim and sentence `number` of an example, the claim alone for 0."""
        kept = np.isin(example["token_type_ids"], [0, number])
        second = example["token_type_ids"][kept] > 0
        if self.layout.positions == "strided":
            positions = example["position_ids"][kept] - second * (number - 1) * self.layout.length
        else:
            positions = np.arange(len(second))
        return {
            "input_ids": example["input_ids"][kept],
            "token_type_ids": second.astype(np.int64),
            "position_ids": positions,
            "starts": np.array([0, second.argmax() if number else ABSENT]),
        }


_FILL = {"input_ids": 0, "token_type_ids": 0, "position_ids": 0, "mlm_labels": NO_LABEL}
_NEEDED = {"input_ids", "token_type_ids", "position_ids", "starts"}


def _check_keys(examples: Sequence[Mapping[str, np.ndarray]]) -> None:
    if not examples:
        raise ValueError("no examples to collate")
    keys = examples[0].keys()
    if keys - {"labels", "mlm_labels"} != _NEEDED:
        wanted = f"{', '.join(sorted(_NEEDED))}, and maybe labels and mlm_labels"
        raise ValueError(f"examples[0] has the keys {sorted(keys)}; they must be {wanted}")
    for number, example in enumerate(examples):
        if example.keys() != keys:
            what = f"examples[{number}] has the keys {sorted(example)}, but examples[0] {sorted(keys)}"
            raise ValueError(what)


def _stacked(rows: Sequence[np.ndarray], *, fill: int | None) -> torch.Tensor:
    """Stack arrays of one shape, or pad their only axis with `fill`."""
    tensors = [torch.from_numpy(np.asarray(row)) for row in rows]
    if fill is None:
        return torch.stack(tensors)
    return pad_sequence(tensors, batch_first=True, padding_value=fill)
