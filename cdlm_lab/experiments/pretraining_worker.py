"""One of several processes of a pretraining; torchrun starts it for notebook 01, with the folder of
checkpoints and history as its argument."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cdlm_lab.experiments.corpora import CorpusSettings
from cdlm_lab.experiments.pretraining import ModelSettings, prepare, train_checkpoints
from cdlm_lab.experiments.pretraining_processes import SETTINGS_FILE, write_result
from cdlm_lab.ranks import is_first
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.processes import end_with_parent, keep_fault


def work(folder: Path) -> None:
    """Train as `settings.json` in the folder says; the first process leaves `result.json`. Errors as of
    `prepare` and `train`."""
    given = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    factors = tuple((part, factor) for part, factor in given["training"].pop("learning_rate_factors"))
    prepared = prepare(
        variant=given["variant"],
        model=ModelSettings(**given["model"]),
        corpus=CorpusSettings(**given["corpus"]),
        training=TrainingConfig(**given["training"], learning_rate_factors=factors),
    )
    result = train_checkpoints(prepared, folder)
    if is_first():
        write_result(result, folder)


def main(folder: Path) -> None:
    """As a program."""
    end_with_parent()
    try:
        work(folder)
    except BaseException as error:
        keep_fault(folder, error)
        raise


if __name__ == "__main__":
    main(Path(sys.argv[1]))
