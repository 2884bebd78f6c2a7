"""Candidate answers and claims of one's own: what `load` returns for a run of notebook 09 or 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import profile_of, score_on_dev, settings_of_run, system_named
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint.answers import AnswerRun
from cdlm_lab.tasks.joint.answers_view import ranked_own, ranking_table
from cdlm_lab.tasks.joint.claims import VerificationRun
from cdlm_lab.tasks.joint.claims_view import judged_own, verdict_html
from cdlm_lab.tasks.joint.examples import fixed_order
from cdlm_lab.tasks.joint.ranking import Ranker
from cdlm_lab.tasks.joint.systems import labels_of_head
from cdlm_lab.tasks.joint.verifying import Verifier
from cdlm_lab.tasks.joint.view import ends_cut
from cdlm_lab.views.answers import PATIENCE, Pictured, foreign_to, list_of, texts_of, warn_of_cut


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

    def rank(self, question: str, candidates: Sequence[str]) -> Ranking:
        """The candidates, best first. Sentences that are too long are truncated."""
        candidates = list_of(candidates, name="candidates")
        texts_of({"the question": question, **{f"candidate {n}": one for n, one in enumerate(candidates)}})
        if not candidates:
            raise ParameterError("there is no candidate; give at least one")
        form = {"tokenizer": self.ranker.tokenizer, "length": self.ranker.model.head.form.length}
        cut = warn_of_cut(ends_cut(self.name, [question, *candidates], **form))
        with bars_after(PATIENCE):
            read = ranked_own({self.label: self.ranker}, question, candidates, **self.reading)
        numbers = fixed_order(tuple(candidates), key="own")
        probabilities = read.probabilities(self.label)
        parts = tuple(
            RankedCandidate(
                candidate=int(numbers[n]),
                text=read.candidates[n],
                probability=probabilities[n],
                read=read.read[n] if read.read else len(read.candidates[n]),
            )
            for n in read.order(self.label)
        )
        foreign = foreign_to(self.profile, self.name, [question, *candidates])
        picture = partial(ranking_table, replace(read, cut=""))  # the line stands above the picture
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
    precision: Precision = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def verify(self, claim: str, evidence: Sequence[str]) -> Verdict:
        """The label of a claim. Only the first sentences of evidence are read, as many as the model takes,
        and sentences that are too long are truncated."""
        evidence = list_of(evidence, name="evidence")
        texts_of({"the claim": claim, **{f"evidence {n}": one for n, one in enumerate(evidence)}})
        with bars_after(PATIENCE):
            read = judged_own(self.verifier, claim, evidence, precision=self.precision)
        cut = warn_of_cut(read.cut)
        shares = read.shares or [None] * len(read.evidence)
        weighed = enumerate(zip(read.evidence, shares, strict=True))
        return Verdict(
            label=read.predicted,
            probabilities=read.probabilities,
            parts=tuple(WeighedEvidence(evidence=n, text=text, share=share) for n, (text, share) in weighed),
            picture=partial(verdict_html, replace(read, cut=""), shares=self.verifier.system.shares),
            cut=cut,
            foreign=foreign_to(self.profile, self.name, [claim, *evidence]),
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
    training = Training(system_named(system, settings.chosen) if system else settings.shown, 0)
    unlabelled = VerificationRun(settings=settings, claims={})
    labels = LABELS[: labels_of_head(unlabelled.model_folder(training))]
    verifier = replace(unlabelled, trained_labels=labels).load(training)
    form = {"precision": settings.precision, "profile": profile_of(unlabelled, training)}
    return ClaimModel(name=name, system=training.system.name, verifier=verifier, **form)
