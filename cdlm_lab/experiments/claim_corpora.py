"""From the corpus that notebook 10 names to claims with evidence: storyworld, or files of FEVER's family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from cdlm_lab.data.claim_files import SETS, claim_sets, read_claims
from cdlm_lab.data.claim_storyworld import read_storyworld_claims
from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.data.fm2 import Evidence
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types

SPLITS = SETS[:3]  # train, dev and test, which every run has
HELD_OUT = SETS[1:]  # what is labelled by the systems, as far as it is there
Claims = Mapping[str, tuple[EvidencedClaim, ...]]  # by set


@dataclass(frozen=True, kw_only=True)
class ClaimCorpus:
    """Which claims are verified, and with what.

    Attributes:
        corpus: `storyworld`, or a folder or file as of `cdlm_lab.data.claim_files`: FEVER with KGAT's
            evidence, or FM2; FeverSymmetric beside either is one more test set.
        train_stories, held_out_stories: of storyworld, up to six claims each; the second for dev, and as many
            for test.
        train_claims, held_out_claims: at most so many are drawn of the training claims, and of each other
            set; 0 = all.
        evidence: `retrieved`, or of FM2 `gold`.
        evidence_sentences: of a claim, at most; the paper has 5.
    """

    corpus: str = "storyworld"
    train_stories: int = 200
    held_out_stories: int = 40
    train_claims: int = 0
    held_out_claims: int = 0
    evidence: str = "retrieved"
    evidence_sentences: int = 3

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, get_args(Evidence), "evidence")
        check_least(self, 1, "evidence_sentences")
        check_least(self, 2, "train_stories", "held_out_stories")
        check_least(self, 0, "train_claims", "held_out_claims")
        if self.corpus == "storyworld" and self.evidence != "retrieved":
            raise ParameterError(f"evidence is {self.evidence!r}; storyworld has retrieved alone")


def read_claim_sets(settings: ClaimCorpus) -> Claims:
    """Claims of train, dev and test, and of FeverSymmetric where it is there.

    Raises:
        ParameterError: a claim of train or dev without label; all of train have one label; all of another set
            are of one group.
        DataError: as `read_claims`.
    """
    stories, path = settings.corpus == "storyworld", settings.corpus
    sets = SPLITS if stories else dict.fromkeys((*SPLITS, *claim_sets(path)))
    read = _storyworld if stories else _file
    found = {name: _drawn(read(name, settings), name, settings) for name in sets}
    for name in ("train", "dev"):
        if missing := [claim.id for claim in found[name] if claim.label is None]:
            raise ParameterError(
                f"{path}: claim {missing[0]} of {name} has no label, which training needs; leave it out"
            )
    for name in sets:
        groups = {claim.group for claim in found[name] if claim.label is not None}
        if name != "train" and len(groups) == 1:
            raise ParameterError(
                f"{path}: all claims of {name} are of {min(groups)!r}; intervals need claims of several pages"
            )
    trained = {claim.label for claim in found["train"]}
    if len(trained) < 2:
        raise ParameterError(f"{path}: all claims of train are {min(trained)}; there is nothing to learn")
    return found


def labels_of(claims: Claims) -> tuple[str, ...]:
    """The labels to choose from: those of LABELS up to the last that any claim has. One that no training
    claim has stays among them: claims that have it are to be counted as wrong."""
    there = {claim.label for of_set in claims.values() for claim in of_set}
    return LABELS[: 1 + max(place for place, label in enumerate(LABELS) if label in there)]


def label_counts(claims: Sequence[EvidencedClaim], labels: Sequence[str]) -> dict[str, int]:
    """Label -> how many claims have it, 0 included."""
    counts = Counter(claim.label for claim in claims)
    return {label: counts[label] for label in labels}


def majority_label(claims: Claims) -> str:
    """The label that most training claims have; of equals the first of LABELS."""
    counts = label_counts(claims["train"], LABELS)
    return max(counts, key=counts.__getitem__)


def _storyworld(name: str, settings: ClaimCorpus) -> Sequence[EvidencedClaim]:
    stories = settings.train_stories if name == "train" else settings.held_out_stories
    return list(read_storyworld_claims(name, stories, evidence=settings.evidence_sentences))


def _file(name: str, settings: ClaimCorpus) -> Sequence[EvidencedClaim]:
    return read_claims(
        settings.corpus, name, evidence=settings.evidence, most_evidence=settings.evidence_sentences
    )


def _drawn(claims: Sequence[EvidencedClaim], name: str, settings: ClaimCorpus) -> tuple[EvidencedClaim, ...]:
    """The claims that are used, in their order."""
    most = settings.train_claims if name == "train" else settings.held_out_claims
    if not most or most >= len(claims):
        return tuple(claims)
    kept = np.random.default_rng([0, SETS.index(name)]).permutation(len(claims))[:most]
    return tuple(claims[number] for number in sorted(kept))
