"""What attention between documents is worth: trained models read with it and with it cut (notebook 11).

CDLM reads the same items whole, with all attention between documents cut, and with that of one layer cut, by
three measures: the perplexity of hidden words that only another document gives away (`storyworld` alone marks
them), or of all hidden words; whether pairs of event mentions corefer; whether two documents match. Each with
two controls: as many edges cut at random within documents, and Local CDLM, which was trained with the cut as
far as hidden words go, since they never see beyond their window.

The scorers of coreference and matching, which come with the project for storyworld, were trained whole: the
table says what these models use, not what another could do without. Global tokens outside the documents, the
first one of both, still join them.

Recorded in `data/results/cut_storyworld.json` and, for news, `data/results/cut_news.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdlm_lab.attention.cut import Cut
from cdlm_lab.data.files import replaced_file
from cdlm_lab.data.storyworld.task_sets import read_storyworld_pairs, read_storyworld_topics
from cdlm_lab.encoders.encoder import load_tokenizer
from cdlm_lab.encoders.source_attention import apart, is_recordable
from cdlm_lab.explorer.ranks import Analysis
from cdlm_lab.parameters import parameters_of
from cdlm_lab.runs.evaluation import ItemTable, Measure, Planned, comparison_rows, score_rows
from cdlm_lab.runs.items import UNTRAINED, items_of
from cdlm_lab.runs.opened import settings_of_run
from cdlm_lab.runs.runs import Training
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference import experiment as coreference
from cdlm_lab.tasks.coreference.examples import corefer, group_mentions, mentions_in, pairs_within
from cdlm_lab.tasks.coreference.scoring import pair_examples, scored
from cdlm_lab.tasks.matching import experiment as matching
from cdlm_lab.tasks.pretraining import perplexity
from cdlm_lab.training.trained import trained_threshold

MOST_PAIRS = 150  # that corefer, and as many that do not
WHOLE, LOCAL = "whole", "Local CDLM, whole"
MEASURES = (
    Measure("cross_document_perplexity", "exp", lower=True),
    Measure("perplexity", "exp", lower=True),
    Measure("coreference"),
    Measure("matching"),
)
Conditions = dict[str, Cut | None]


@dataclass(frozen=True, kw_only=True)
class CutScores:
    """The scores of each condition, and by how much each differs from the whole model."""

    rows: list[Score]
    comparisons: list[dict[str, Any]]  # as `comparison_rows` returns them, `b` is the whole model


def conditions(layers: int) -> Conditions:
    """Name -> what is cut."""
    of_layers = {f"layer {number + 1} cut": Cut(layers=(number,)) for number in range(layers)}
    return {
        WHOLE: None,
        "all layers cut": Cut(),
        **of_layers,
        "as much cut within documents": Cut(edges="random"),
    }


def measure_perplexity(settings: perplexity.Settings) -> pd.DataFrame:
    """Items of the hidden words under each condition, of the settings' `cdlm` and `local_cdlm`."""
    parts = []
    models = {name: where for name, where in settings.checkpoints.items() if name in ("cdlm", "local-cdlm")}
    form = {"split": settings.split, "window": settings.window}
    read = perplexity.models_and_examples(models, settings.clusters_read, **form)
    for name, model, examples, _ in read:
        if not is_recordable(model):  # of another kind, which cannot be cut
            continue
        tokenizer = load_tokenizer(models[name])
        every = conditions(model.config.num_hidden_layers) if name == "cdlm" else {LOCAL: None}
        for condition, cut in every.items():
            with apart(model, tokenizer, cut):
                losses = perplexity.cluster_losses(
                    model, examples, batch_size=settings.batch_size, name=f"CDLM, {condition}"
                )
            parts.append(perplexity.items_of_losses({condition: losses}))
    return pd.concat(parts) if parts else pd.DataFrame()


def measure_coreference(*, stories: int, run: str = "storyworld/coreference", seed: int = 0) -> pd.DataFrame:
    """Items of event pairs in different documents of storyworld's test set, as many that corefer as do not:
    is the scorer's probability on the right side of its threshold?"""
    settings = settings_of_run(coreference.Settings, run)
    scorer, topics = coreference.load_scorer(settings), [*read_storyworld_topics("test", stories)]
    groups = group_mentions(topics, settings.kind, "topic", None)
    pairs, mentions = pairs_within(groups), mentions_in(groups)
    same, documents = corefer(groups, pairs), np.array([mention.document for mention in mentions])
    topic_of = {document.id: topic.id for topic in topics for document in topic.documents}
    across = documents[pairs[:, 0]] != documents[pairs[:, 1]]
    generator = np.random.default_rng(seed)
    most = min(MOST_PAIRS, int((across & same).sum()), int((across & ~same).sum()))
    sides = (generator.permutation(np.flatnonzero(across & of))[:most] for of in (same, ~same))
    chosen = np.sort(np.concatenate([*sides]))
    examples = pair_examples(settings, scorer.tokenizer, topics, groups).in_order(chosen)
    clusters, threshold = [topic_of[documents[first]] for first in pairs[chosen, 0]], trained_threshold(run)

    def right() -> np.ndarray:
        return (scored(scorer, examples, file=None, name="") > threshold) == same[chosen]

    form = {"items": chosen, "clusters": clusters}
    return _items("coreference", right, scorer.model, scorer.tokenizer, form)


def measure_matching(*, stories: int, run: str = "storyworld/matching") -> pd.DataFrame:
    """Items of related and unrelated pairs of storyworld's test set: is CDLM right?"""
    settings = settings_of_run(matching.Settings, run)
    opened = matching.MatchingRun(settings=settings, pairs={})
    (system,) = (one for one in settings.chosen if one.name == "cdlm")
    matcher = opened.load(Training(system, 0))
    pairs = [*read_storyworld_pairs("test", stories, unrelated=settings.drawn)]
    related = np.array([pair.related for pair in pairs])

    def right() -> np.ndarray:
        return (opened.predict_pairs(matcher, pairs).probabilities > 0.5) == related

    form = {"items": [pair.id for pair in pairs], "clusters": [pair.cluster for pair in pairs]}
    return _items("matching", right, matcher.model, matcher.tokenizer, form)


def _items(
    metric: str, right: Callable[[], np.ndarray], model: Any, tokenizer: Any, form: Mapping[str, Any]
) -> pd.DataFrame:
    parts = []
    for condition, cut in conditions(model.config.num_hidden_layers).items():
        with apart(model, tokenizer, cut):
            values = {metric: right().astype(float)}
        parts.append(items_of(values, system=condition, split="", seed=UNTRAINED, **form))
    return pd.concat(parts)


def compare(items: pd.DataFrame) -> CutScores:
    """Scores with intervals, and the difference of each condition from the whole model, over clusters."""
    table, systems = ItemTable(items), items["system"].unique()
    planned = [
        Planned(a=one, b=WHOLE, measure=measure.name, split="")
        for measure in MEASURES
        for one in systems
        if one != WHOLE
    ]
    return CutScores(rows=score_rows(table, MEASURES), comparisons=comparison_rows(table, MEASURES, planned))


def measure(analysis: Analysis) -> CutScores:
    """All three measures on storyworld, with `cut_stories` clusters, topics and related pairs each, of the
    analysis' CDLM and Local CDLM and of the shipped scorers; saved in the run folder, and read from there.
    Nothing is measured on another corpus, or with 0 stories."""
    file, given = analysis.folder / "cuts.json", analysis.settings
    if file.is_file():
        return read_scores(file)
    if given.corpus != "storyworld" or not given.cut_stories:
        return CutScores(rows=[], comparisons=[])
    names = ("cdlm", "local_cdlm", "max_length", "window", "seed", "precision")
    left_out = {"longformer": "", "rand_cdlm": "", "prefix_cdlm": "", "clusters": given.cut_stories}
    settings = perplexity.Settings(**parameters_of(given, *names), **left_out)
    parts = [measure_perplexity(settings), measure_coreference(stories=given.cut_stories, seed=given.seed)]
    scores = compare(pd.concat([*parts, measure_matching(stories=given.cut_stories)]))
    write_scores(scores, file)
    return scores


def write_scores(scores: CutScores, file: Path) -> None:
    """Write the scores as JSON, atomically."""
    with replaced_file(file) as opened:
        json.dump(asdict(scores), opened, indent=1)


def read_scores(file: Path) -> CutScores:
    """Read what `write_scores` wrote."""
    read = json.loads(file.read_text(encoding="utf-8"))
    return CutScores(rows=[Score(**row) for row in read["rows"]], comparisons=read["comparisons"])
