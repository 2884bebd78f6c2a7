"""The examples behind a score: a run's saved predictions with its data, as its notebook shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ipywidgets import HTML, Widget

from cdlm_lab.parameters import parameter_names
from cdlm_lab.results.reports import ANSWERS, CLAIMS, QUESTIONS, TAGGING
from cdlm_lab.runs.report import RunError
from cdlm_lab.runs.runs import SystemRun, Training
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint.answers_view import RankingBrowser, read_rankings
from cdlm_lab.tasks.joint.claims_view import shown_claims, verdict_browser
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.multihop.view import answered_questions, question_browser
from cdlm_lab.tasks.tagging import experiment as document_tagging
from cdlm_lab.tasks.tagging.view import tagged_browser, tagged_sentences
from cdlm_lab.views.html import div, escaped


def _questions(run: SystemRun, training: Any, split: str) -> Widget:
    kept = _kept(run, training, split)
    return question_browser(answered_questions(kept, support=run.settings.support))


def _tags(run: SystemRun, training: Any, split: str) -> Widget:
    return tagged_browser(tagged_sentences(_kept(run, training, split)))


def _claims(run: SystemRun, training: Any, split: str) -> Widget:
    # Without the shares of the evidence: the model would have to read all of it again.
    return verdict_browser(shown_claims(_kept(run, training, split), None), shares="")


def _answers(run: SystemRun, training: Any, split: str) -> Widget:
    """All systems at once, because the effect of a joint model shows beside the pairwise one."""
    predictions: dict[tuple[str, int], dict[str, Any]] = {}
    for one in run.trainings:
        files = {name: file for name, file in run.files(one).items() if file.is_file()}
        predictions[one.key] = {name: run.read_predictions(file, name) for name, file in files.items()}
    _kept(run, training, split)
    return RankingBrowser(read_rankings(run, predictions, split), beside=answer_selection.PAIRWISE)


# Experiment -> its settings class, its run class, and the function that shows the predictions of a training.
_VIEWS: Mapping[str, tuple[type, type[SystemRun], Callable[[Any, Any, str], Widget]]] = {
    QUESTIONS: (multihop_qa.Settings, multihop_qa.MultihopRun, _questions),
    TAGGING: (document_tagging.Settings, document_tagging.TaggingRun, _tags),
    CLAIMS: (fact_verification.Settings, fact_verification.VerificationRun, _claims),
    ANSWERS: (answer_selection.Settings, answer_selection.AnswerRun, _answers),
}


# Experiments whose predictions have question ids: showing them needs (nearly) no training stories.
_BY_ID, FEW_STORIES = (QUESTIONS, ANSWERS), 20


def has_examples(experiment: str) -> bool:
    """True if single examples of this experiment can be shown."""
    return experiment in _VIEWS


def examples_of(
    folder: Path, *, experiment: str, parameters: Mapping[str, Any], system: str, split: str
) -> Widget:
    """A browser of what a system of a run, trained with seed 0, predicted for a split. Reads the data of the
    run again, but loads no model. If the examples cannot be opened, a line of text says why."""
    kind, run_kind, view = _VIEWS[experiment]
    try:
        known = {**parameters, "run_folder": str(folder)}
        given = kind(**{name: value for name, value in known.items() if name in parameter_names(kind)})
        if experiment in _BY_ID and given.corpus == "storyworld":
            given = replace(given, train_stories=min(given.train_stories, FEW_STORIES))
        run = run_kind.read(given)
        of_system = [one for one in run.trainings if one.key == (system, 0)]
        if not of_system:
            raise RunError(f"{folder} trained no {system}")
        return view(run, of_system[0], split)
    except (ValueError, OSError, LookupError, TypeError, RunError) as error:
        return HTML(
            div(f"The examples cannot be opened: {escaped(' '.join(str(error).split()))}", "color:#d64545")
        )


def _kept(run: SystemRun, training: Training, split: str) -> Any:
    files = run.files(training)
    if split not in files or not files[split].is_file():
        raise RunError(f"{run.folder} kept no predictions of {training.label} on {split}")
    return run.read_predictions(files[split], split)
