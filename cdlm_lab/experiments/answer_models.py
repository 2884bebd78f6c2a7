"""From the name of a system to a model, and to what it reads at once (MSPP paper, sections 3.2 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.examples.candidate_examples import CandidateExamples, JointCollate
from cdlm_lab.examples.encode_candidates import EncodedCandidates
from cdlm_lab.examples.joint_sequence import POSITIONS
from cdlm_lab.examples.special_tokens import from_tokenizer
from cdlm_lab.experiments.answer_systems import AnswerSystem, answer_systems
from cdlm_lab.experiments.joint_checkpoints import paragraph_checkpoint
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.joint_head import LAYERS
from cdlm_lab.models.joint_model import JointHead, JointModel, load_joint_model
from cdlm_lab.parameters import check_choice, check_least, check_types


@dataclass(frozen=True, kw_only=True)
class AnswerModels:
    """What the systems are made of.

    Attributes:
        systems: their names, separated by spaces (see experiments/answer_systems.py).
        encoder: of the systems without MSPP: a folder, a hub name, `minilm`, or one that comes with the
            project.
        mspp: a run folder of notebook 08, or a folder that holds several, of which the head tells the one for
            a system; systems without MSPP need none.
        candidates: k, how many are read at once.
        sentence_length: L, tokens of a sentence in a joint sequence, the one in front included.
        pairwise_length: the same of a pair. The paper gives every model L(k + 1) tokens in all, which is
            L(k + 1) / 2 for each of two sentences: 192 with its values.
        positions: of joint sequences, `strided` (the paper) or `compact` (its released code); a pair is
            always compact, as cross-encoders are.
        head_layers: `linear` (the paper) or `tanh` (its released code).
    """

    systems: str = "pairwise joint-ie joint-ae"
    encoder: str = "storyworld/longformer"
    mspp: str = ""
    candidates: int = 5
    sentence_length: int = 32
    pairwise_length: int = 32
    positions: str = "strided"
    head_layers: str = "linear"

    def __post_init__(self) -> None:
        check_types(self)
        answer_systems(self.systems)
        check_least(self, 2, "candidates", "sentence_length", "pairwise_length")
        check_choice(self, POSITIONS, "positions")
        check_choice(self, LAYERS, "head_layers")

    @property
    def chosen(self) -> tuple[AnswerSystem, ...]:
        """The systems, in the order of the paper's tables; pairwise is the first."""
        return answer_systems(self.systems)

    def head_of(self, system: AnswerSystem) -> JointHead:
        """The head of a system, which knows the layout of its sequences."""
        return JointHead(
            kind=system.head,
            sentences=1 + (self.candidates if system.is_joint else 1),
            length=self.sentence_length if system.is_joint else self.pairwise_length,
            positions=self.positions if system.is_joint else "compact",
            layers=self.head_layers,
        )

    def checkpoint_of(self, system: AnswerSystem) -> str:
        """What a system starts from; errors as of `paragraph_checkpoint`."""
        if not system.pretrained:
            return self.encoder
        return paragraph_checkpoint(self.mspp, head=system.head.removesuffix("_k"))


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """A model and how it reads questions with candidates."""

    model: JointModel
    tokenizer: PreTrainedTokenizerBase

    def examples(self, sets: Sequence[CandidateSet]) -> CandidateExamples:
        """Each candidate once, in groups of an order that knows nothing of labels."""
        return self._examples(sets, shuffle=False)

    def training_examples(self, sets: Sequence[CandidateSet], *, size: int, seed: int) -> CandidateExamples:
        """`size` examples, in each pass in other groups and in another order."""
        return self._examples(sets, shuffle=True, size=size, seed=seed)

    def _examples(
        self, sets: Sequence[CandidateSet], *, shuffle: bool, size: int | None = None, seed: int = 0
    ) -> CandidateExamples:
        return CandidateExamples(
            sets=sets,
            encoded=EncodedCandidates(sets, self.tokenizer),
            layout=self.model.head.form.layout,
            special=from_tokenizer(self.tokenizer),
            shuffle=shuffle,
            size=size,
            seed=seed,
        )

    @property
    def collate(self) -> JointCollate:
        """From examples to batches."""
        return JointCollate(pad_token_id=self.tokenizer.pad_token_id)


def new_ranker(
    source: str | Path,
    head: JointHead,
    *,
    seed: int,
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
) -> Ranker:
    """A new one on an encoder, or a trained one from its folder; arguments and errors as of
    `load_joint_model`."""
    model, tokenizer = load_joint_model(
        source, head=head, seed=seed, dropout=dropout, attention_dropout=attention_dropout
    )
    return Ranker(model=model, tokenizer=tokenizer)
