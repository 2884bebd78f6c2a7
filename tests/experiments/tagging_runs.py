"""Tagged documents, runs of notebook 07 on them, and rows of reports and tables, for tests whose expected
numbers are computed by hand."""

import json
import re
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.convert.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.tasks.tagging.experiment import Settings, TaggedCorpus, TaggingRun
from cdlm_lab.tasks.tagging.systems import Taggers
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.scores import Score, plain_name


def tagged(name: str, *sentences: tuple[str, str | None]) -> TaggedDocument:
    """Make a document from (words, tags) of each sentence; tags None = not labelled."""
    made = (
        TaggedSentence(words=tuple(words.split()), tags=tuple(tags.split()) if tags else None)
        for words, tags in sentences
    )
    return TaggedDocument(id=name, sentences=tuple(made))


def finished_run(experiment: Any, settings: Any) -> tuple[Any, Any]:
    """Train, predict and write the report of an experiment; return the run and its predictions."""
    run = experiment.prepare(settings)
    experiment.train(run)
    predictions = experiment.predict(run)
    experiment.report(run, experiment.evaluate(run, predictions))
    return run, predictions


def tagging_run(corpus: TaggedCorpus, **values: Any) -> TaggingRun:
    """Make a run of notebook 07 on these documents, without locking its folder."""
    settings = Settings(**values)
    labels = corpus.labels if corpus.documents else ()
    taggers = Taggers(settings=settings, labels=labels, cache=Path(settings.run_folder))
    return TaggingRun(settings=settings, corpus=corpus, taggers=taggers)


def saved(folder: Path, *parts: PreTrainedModel | PreTrainedTokenizerBase) -> str:
    """Save a model and its tokenizer in a folder and return the folder."""
    for part in parts:
        part.save_pretrained(folder)
    return str(folder)


def score_of(report: Report, system: str, split: str, metric: str, seed: int | None = None) -> Score:
    """Return one row of a report's scores."""
    return next(row for row in report.rows if row.key == (system, split, "", metric, seed))


def by_name(report: Report) -> dict[str, Score]:
    """Return a report's scores by name, such as `system/group/split/metric`."""
    return {plain_name(row): row for row in report.rows}


def table_cells(html: str) -> list[list[str]]:
    """Return the texts of the cells of an HTML table, row by row."""
    rows = re.findall(r"<tr.*?</tr>", html, flags=re.DOTALL)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]
    return [[re.sub(r"<[^>]+>", " ", cell).strip() for cell in row] for row in texts]


def judged(folder: Path) -> list[float]:
    """Return the validation score of each epoch of a training."""
    lines = (folder / "training" / "history.jsonl").read_text().splitlines()
    return [record["eval_judged"] for record in map(json.loads, lines) if "eval_judged" in record]
