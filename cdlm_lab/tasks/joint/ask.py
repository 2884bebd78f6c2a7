"""Candidate answers and claims of one's own: what `load` returns for a run of notebook 09 or 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.records import CandidateSet, EvidencedClaim
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.examples.tokens import characters_read
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import profile_of, score_on_dev, settings_of_run, system_named
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint.answers import AnswerRun
from cdlm_lab.tasks.joint.answers_view import ranking_html, read_ranking
from cdlm_lab.tasks.joint.claims import VerificationRun
from cdlm_lab.tasks.joint.claims_view import ReadClaim, shown_claims, verdict_html
from cdlm_lab.tasks.joint.examples import fixed_order
from cdlm_lab.tasks.joint.ranking import Ranker, score_answers
from cdlm_lab.tasks.joint.systems import labels_of_head
from cdlm_lab.tasks.joint.verifying import Verifier, evidence_shares, predict_verdicts
from cdlm_lab.tasks.joint.view import ends_cut
from cdlm_lab.views.answers import PATIENCE, Pictured, asked, foreign_to, list_of, texts_of, warn_of_cut
from cdlm_lab.views.html import cut_in_words

OWN = "own"  # id of what a person asks; it also fixes the order in which candidates are read


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidate:
    """A candidate answer."""

    candidate: int  # its index in the given order, from 0
    text: str
    probability: float  # probability that it answers the question
    read: int  # how many of its characters, the first ones, the model has read


@dataclass(frozen=True, kw_only=True)
class Ranking(Pictured[RankedCandidate]):
    """The candidates, best first."""

    def as_json(self) -> dict[str, Any]:
        """The candidates, best first."""
        return {"ranking": list(self.rows())}


@dataclass(frozen=True, kw_only=True)
class AnswerModel:
    """Ranks candidate answers to a question."""

    name: str
    system: str
    label: str
    ranker: Ranker = field(repr=False)
    reading: Mapping[str, Any] = field(repr=False)  # batch size and precision
    profile: TextProfile | None = field(default=None, repr=False)

    example: ClassVar[Mapping[str, Any]] = {  # of storyworld, in a box before a person types
        "question": "How many miners were killed?",
        "candidates": [
            "The mine was opened in 1974.",
            "Some 287 miners were rescued, blinking in the light.",
            "The blast killed 75 miners at once.",
            "The market, with its 294 stalls, opened late.",
            "At the Bortiofara school, 973 pupils spent the day drawing.",
            '"Everybody stood there and looked," he recalled.',
        ],
    }

    def rank(self, question: str | Sequence[str], candidates: Sequence[str] | Sequence[Sequence[str]]) -> Any:
        """The candidates, best first: a `Ranking`; for lists of questions and of their candidates `Answers`.
        Sentences that are too long are truncated."""
        return asked(self._read, self._rank, question=question, candidates=candidates)

    def _read(self, question: str, candidates: Sequence[str]) -> CandidateSet:
        given = tuple(list_of(candidates, name="candidates"))
        texts_of({"the question": question, **{f"candidate {n}": one for n, one in enumerate(given)}})
        if not given:
            raise ParameterError("there is no candidate; give at least one")
        return CandidateSet(id=OWN, question=question, candidates=given, correct=(False,) * len(given))

    def _rank(self, sets: Sequence[CandidateSet]) -> list[Ranking]:
        named = [replace(one, id=str(number)) for number, one in enumerate(sets)]
        with bars_after(PATIENCE):
            scores = score_answers(self.ranker, named, key=OWN, **self.reading).scores
        return [self._ranking(one, of_set) for one, of_set in zip(sets, scores, strict=True)]

    def _ranking(self, one: CandidateSet, scores: np.ndarray) -> Ranking:
        tokenizer, length = self.ranker.tokenizer, self.ranker.model.head.form.length
        texts = [one.question, *one.candidates]
        cut = warn_of_cut(ends_cut(self.name, texts, tokenizer=tokenizer, length=length))
        shown = read_ranking(one, {self.label: scores}, known=False)
        ends = characters_read(shown.candidates, tokenizer, most=length - 1)
        shown = replace(shown, id=self.label, read=tuple(ends))
        numbers, probabilities = fixed_order(one.candidates, key=OWN), shown.probabilities(self.label)
        parts = tuple(
            RankedCandidate(
                candidate=int(numbers[n]),
                text=shown.candidates[n],
                probability=probabilities[n],
                read=ends[n],
            )
            for n in shown.order(self.label)
        )
        picture = partial(ranking_html, shown, system=self.label, beside=self.label)
        foreign = foreign_to(self.profile, self.name, texts, real=[])
        return Ranking(parts=parts, picture=picture, foreign=foreign, cut=cut)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedEvidence:
    """A sentence of evidence, with its share in the verdict."""

    evidence: int  # its index, from 0
    text: str
    share: float | None  # its share in the verdict, in [0, 1]; None = not read, or the system has none


@dataclass(frozen=True, kw_only=True)
class Verdict(Pictured[WeighedEvidence]):
    """The predicted label of a claim."""

    label: str
    probabilities: Mapping[str, float]  # label -> probability

    def heading(self) -> str:
        """The label with its probability."""
        return f"{self.label}: {self.probabilities[self.label]:.1%}"

    def as_json(self) -> dict[str, Any]:
        """The label, all probabilities, and the shares of the evidence."""
        shares = [one.share for one in self.parts]
        return {"label": self.label, "probabilities": dict(self.probabilities), "shares": shares}


@dataclass(frozen=True, kw_only=True)
class ClaimModel:
    """Labels a claim given evidence."""

    name: str
    system: str
    verifier: Verifier = field(repr=False)
    reading: Mapping[str, Any] = field(repr=False)  # batch size and precision
    profile: TextProfile | None = field(default=None, repr=False)

    example: ClassVar[Mapping[str, Any]] = {  # of storyworld, in a box before a person types
        "claim": "The police had 699 officers on duty.",
        "evidence": [
            "The museum said the police had 699 officers out through the night.",
            "A camera across the street shows the theft: 448 seconds.",
            "By evening 357 tips had come in.",
        ],
    }

    def verify(self, claim: str | Sequence[str], evidence: Sequence[str] | Sequence[Sequence[str]]) -> Any:
        """The label of a claim, with each sentence's share in it: a `Verdict`; for lists of claims and of
        their evidence `Answers`. Only the first sentences of evidence are read, as many as the model takes,
        and sentences that are too long are truncated."""
        return asked(self._read, self._verify, claim=claim, evidence=evidence)

    def _read(self, claim: str, evidence: Sequence[str]) -> EvidencedClaim:
        given = tuple(list_of(evidence, name="evidence"))
        texts_of({"the claim": claim, **{f"evidence {n}": one for n, one in enumerate(given)}})
        return EvidencedClaim(id=OWN, text=claim, evidence=given, label=None, group="")

    def _verify(self, claims: Sequence[EvidencedClaim]) -> list[Verdict]:
        most = self.verifier.layout.candidates if self.verifier.system.reads_evidence else 0
        read = [
            replace(one, id=str(number), evidence=one.evidence[:most]) for number, one in enumerate(claims)
        ]
        with bars_after(PATIENCE):
            predictions = predict_verdicts(self.verifier, read, **self.reading)
            form = {"precision": self.reading["precision"]}
            shares = evidence_shares(self.verifier, read, **form) if most else [None] * len(read)
        return [self._verdict(*one) for one in zip(claims, shown_claims(predictions, shares), strict=True)]

    def _verdict(self, claim: EvidencedClaim, read: ReadClaim) -> Verdict:
        system, length = self.verifier.system, self.verifier.layout.length
        rest, tokenizer = len(claim.evidence) - len(read.evidence), self.verifier.tokenizer
        cut = [ends_cut(self.name, (claim.text, *read.evidence), tokenizer=tokenizer, length=length)]
        policy = f"{self.name} reads the first {len(read.evidence)}"
        form = {"lost": rest, "of": len(claim.evidence), "policy": policy, "unit": "sentences"}
        cut.append(cut_in_words("evidence", **form))
        if not system.reads_evidence:
            cut = [f"{system.label} reads no evidence" * bool(claim.evidence)]
        ends = characters_read(read.evidence, tokenizer, most=length - 1)
        shares = None if read.shares is None else (*read.shares, *[None] * rest)
        form = {"id": system.label, "evidence": claim.evidence, "shares": shares}
        shown = replace(read, read=(*ends, *[0] * rest), **form)
        weighed = enumerate(zip(claim.evidence, shares or [None] * len(claim.evidence), strict=True))
        return Verdict(
            label=shown.predicted,
            probabilities=shown.probabilities,
            parts=tuple(WeighedEvidence(evidence=n, text=text, share=share) for n, (text, share) in weighed),
            picture=partial(verdict_html, shown, shares=system.shares),
            cut=warn_of_cut("; ".join(filter(None, cut))),
            foreign=foreign_to(self.profile, self.name, [claim.text, *claim.evidence], real=[]),
        )


def load_answers(name: str, run: str, system: str) -> AnswerModel:
    """A ranker of a run of notebook 09."""
    settings = settings_of_run(answer_selection.Settings, run)
    opened = AnswerRun(settings=settings, splits={})
    chosen = system_named(system, sorted(settings.chosen, key=partial(score_on_dev, opened)))
    training = Training(chosen, 0)
    form = {"label": chosen.label, "reading": settings.predicting, "profile": profile_of(opened, training)}
    return AnswerModel(name=name, system=chosen.name, ranker=opened.load(training), **form)


def load_claims(name: str, run: str, system: str) -> ClaimModel:
    """A verifier of a run of notebook 10."""
    settings = settings_of_run(fact_verification.Settings, run)
    training = Training(system_named(system, settings.chosen), 0)
    unlabelled = VerificationRun(settings=settings, claims={})
    labels = LABELS[: labels_of_head(unlabelled.model_folder(training))]
    verifier = replace(unlabelled, trained_labels=labels).load(training)
    form = {"reading": settings.predicting, "profile": profile_of(unlabelled, training)}
    return ClaimModel(name=name, system=training.system.name, verifier=verifier, **form)
