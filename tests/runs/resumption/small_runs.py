"""A small training of each kind, and the files by which two runs of it are compared bit for bit."""

import importlib
import json
from pathlib import Path
from typing import Any

from cdlm_lab.parameters import settings_of

_OFTEN = {"evaluate_every": 2, "warmup_steps": 1}
# kind -> module of its experiment, and parameters; dropout, which draws random numbers, wherever there is one
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "pretraining": (
        "pretraining.experiment",
        {"train_clusters": 12, "held_out_clusters": 4, "max_length": 96, "window": 16, "dropout": 0.1}
        | {"steps": 6, "batch_size": 2, "micro_batch_size": 1, **_OFTEN},
    ),
    # No token is global: the global projections, copies of the local ones, are updated after the training.
    "local_pretraining": (
        "pretraining.experiment",
        {"variant": "local-cdlm", "train_clusters": 12, "held_out_clusters": 4, "max_length": 96}
        | {"window": 16, "dropout": 0.1, "steps": 6, "batch_size": 2, "micro_batch_size": 1, **_OFTEN},
    ),
    "coreference": (
        "coreference.experiment",
        {"model": "storyworld/local-cdlm", "train_stories": 3, "held_out_stories": 2, "max_length": 96}
        | {"window": 8, "train_pairs": 12, "epochs": 2, "batch_size": 4, "micro_batch_size": 2}
        | {"context": "sentences", "topic_level": "subtopic", "attention_dropout": 0.1},
    ),
    "matching": (
        "matching.experiment",
        {"systems": "gru-han bert-han-finetuned cdlm", "hidden_size": 6, "most_sentences": 6}
        | {
            "most_words": 10,
            "max_length": 128,
            "window": 16,
            "batch_size": 4,
            "train_stories": 6,
            "held_out_stories": 3,
        }
        | {"epochs": 2, "encoder_epochs": 2, "encoder_batch_size": 4, "encoder_micro_batch_size": 2}
        | {"encoder_dropout": 0.1},
    ),
    "multihop": (
        "multihop.experiment",
        {"systems": "longformer cdlm", "train_stories": 4, "held_out_stories": 2, "train_questions": 8}
        | {"passage_sentences": 1, "epochs": 2, "batch_size": 4, "micro_batch_size": 2, "max_length": 256}
        | {"attention_dropout": 0.1, "window": 32},
    ),
    "tagging": (
        "tagging.experiment",
        {"systems": "bert-lstm doc-arc dynamic-doc-arc", "train_documents": 4, "held_out_documents": 2}
        | {"occurrences": 4, "hidden_size": 8, "layers": 1, "epochs": 2}
        | {"encoder_epochs": 2, "learning_rate": 0.03},
    ),
    "paragraphs": (
        "joint.paragraphs",
        {"train_clusters": 3, "held_out_clusters": 2, "sentence_length": 10, "steps": 6, "batch_size": 4}
        | {"micro_batch_size": 2, "dropout": 0.1, "seed": 5, **_OFTEN},
    ),
    "answers": (
        "joint.answers",
        {"systems": "pairwise joint-ae", "train_stories": 3, "held_out_stories": 2, "candidates": 3}
        | {"sentence_length": 12, "pairwise_length": 12, "epochs": 2, "batch_size": 8}
        | {"micro_batch_size": 4, "dropout": 0.1},
    ),
    "claims": (
        "joint.claims",
        {"systems": "pairwise-sum joint-ie claim-only", "train_stories": 4, "held_out_stories": 2}
        | {"evidence_sentences": 2, "sentence_length": 12, "epochs": 2, "batch_size": 8}
        | {"micro_batch_size": 4, "dropout": 0.1},
    ),
}


PRETRAINING = {
    kind for kind, (module, _) in KINDS.items() if module in ("pretraining.experiment", "joint.paragraphs")
}


def module_of(kind: str) -> Any:
    """Return the module of the experiment of a kind."""
    return importlib.import_module(f"cdlm_lab.tasks.{KINDS[kind][0]}")


def prepared(kind: str, folder: Path, **changes: Any) -> Any:
    """Claim a folder for a small run of a kind."""
    module = module_of(kind)
    own = {"trained": ""} if hasattr(module.Settings(), "trained") else {}
    values = {**own, **KINDS[kind][1], **changes, "run_folder": str(folder / "run")}
    cache = {"cache": folder / "cache"} if kind in PRETRAINING else {}
    return module.prepare(settings_of(module.Settings, values), **cache)


def evaluated(kind: str, run: Any) -> None:
    """Finish a run: predict, evaluate, and write its report."""
    module = module_of(kind)
    trained = [module.train(run)] if kind in PRETRAINING else []  # only read, if it is there
    predictions = [module.predict(run)] if hasattr(module, "predict") else []
    module.report(run, module.evaluate(run, *predictions, *trained))


def weights(folder: Path) -> dict[str, bytes]:
    """Return the contents of all model folders of a run, by path."""
    models = sorted((folder / "run").rglob("model"))
    files = [file for model in models for file in sorted(model.iterdir()) if file.name != "made.json"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def scores(folder: Path) -> str:
    """Return the score rows and tables of a run's report, without those of times."""
    report = json.loads((folder / "run" / "report.json").read_text(encoding="utf-8"))
    rows = [row for row in report["scores"] if "seconds" not in row["metric"]]
    tables = {
        name: rows for name, rows in report["tables"].items() if not any("seconds" in row for row in rows)
    }
    return json.dumps([rows, tables], sort_keys=True)
