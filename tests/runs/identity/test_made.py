"""A model's folder says what made it, through every run before it, and tables say what it began with."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ship import ship_run

from cdlm_lab.encoders import model_folder
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.runs import identity
from cdlm_lab.runs.identity import facts_of, fingerprint_of_model, lineage, read_made
from cdlm_lab.runs.made import began_with
from cdlm_lab.runs.report import RunError
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.multihop import view
from cdlm_lab.tasks.pretraining import experiment as pretraining

QUESTIONS = {"train_stories": 2, "held_out_stories": 2, "train_questions": 4, "epochs": 1, "warmup_steps": 0}
QUESTIONS |= {
    "batch_size": 2,
    "micro_batch_size": 2,
    "max_length": 256,
    "window": 32,
}


def answered(folder: Path, encoder: Path) -> multihop_qa.MultihopRun:
    """A finished run of notebook 06 that begins with a model."""
    given = multihop_qa.Settings(
        systems="cdlm", encoders=str(encoder), run_folder=str(folder), precision="float32", **QUESTIONS
    )
    run = multihop_qa.prepare(given)
    multihop_qa.train(run)
    scores = multihop_qa.evaluate(run, multihop_qa.predict(run))
    multihop_qa.report(run, scores)
    return run


def test_what_made_a_model_through_three_runs(small, cache, tmp_path, monkeypatch):
    base = replace(small, variant="longformer", run_folder=str(tmp_path / "base"))
    pretraining.train(pretraining.prepare(base, cache=cache))
    first = read_made(tmp_path / "base" / "model")
    assert (first["experiment"], first["system"], first["parent"]) == ("pretraining", "longformer", None)
    assert first["data"] == {"storyworld": "generator 1"}
    assert (first["steps"], first["seed"], first["parameters"]["model"]) == (4, 0, "tiny")
    assert first["versions"] == {name: identity.VERSIONS[name] for name in ("pretraining", "training")}
    assert "run_folder" not in first["parameters"]

    run = answered(tmp_path / "once", tmp_path / "base" / "model")
    model = run.model_folder(run.trainings[0])
    made = read_made(model)
    parent = made["parent"]
    assert parent["name"] == str(tmp_path / "base" / "model")
    assert parent["fingerprint"] == fingerprint_of_model(tmp_path / "base" / "model")
    assert parent["made"] == first
    report = multihop_qa.prepare(run.settings).finished
    assert report.data["began_with"] == {"cdlm": {"base": "longformer", "after": []}}
    assert "CDLM (from Longformer)" in view.score_table(report).html()
    base = str(tmp_path / "base" / "model")
    of_base = {"name": base, "variant": "longformer", "corpus": "storyworld", "root": "tiny", "steps": 4}
    facts = report.identity["encoders"]["cdlm"]
    recipe = facts["recipe"]
    assert facts == of_base | {"model": base, "seed": 0, "recipe": recipe}

    again = answered(tmp_path / "twice", model)
    assert read_made(again.model_folder(again.trainings[0]))["parent"]["made"] == made
    report = multihop_qa.prepare(again.settings).finished
    assert report.data["began_with"] == {"cdlm": {"base": "longformer", "after": ["questions"]}}
    assert "CDLM (from Longformer, after questions)" in view.score_table(report).html()
    facts = report.identity["encoders"]["cdlm"]
    after = {"model": str(model), "tasks": ["questions"], "seed": 0, "recipe": facts["recipe"]}
    assert facts == of_base | after
    assert facts["recipe"] != recipe

    monkeypatch.setattr(model_folder, "FOLDER", tmp_path / "shipped")
    ship_run(tmp_path / "once", "storyworld/new")
    shipped = read_made(tmp_path / "shipped" / "new" / "systems" / "cdlm-0" / "model")
    assert shipped["parent"]["made"] == made["parent"]["made"]
    assert str(tmp_path) not in json.dumps(shipped), "no place of this machine"
    opened = replace(run.settings, trained=str(tmp_path / "once"), run_folder=str(tmp_path / "opened"))
    assert multihop_qa.prepare(opened).origins == {"cdlm": {"base": "longformer", "after": []}}
    assert multihop_qa.prepare(opened).encoders["cdlm"]["model"] == base, "as before it was trained"

    shutil.rmtree(tmp_path / "once" / "systems" / "cdlm-0" / "model")
    shutil.copytree(model.parents[2] / ".." / "twice" / "systems" / "cdlm-0" / "model", model)
    with pytest.raises(RunError, match=r"was begun with other data or models: the model .* has changed"):
        multihop_qa.prepare(opened)


SHIPPED = {
    "matching/systems/cdlm-0/model": ("cdlm", ["language modelling", "claims"]),
    "answers/systems/joint-ie-0/model": ("cdlm", ["language modelling"]),
    "claims/systems/joint-ie-0/model": ("cdlm", ["language modelling", "claims"]),
    "questions/systems/local-cdlm-0/model": ("cdlm", ["language modelling", "questions"]),
    "questions-compared/systems/cdlm-0/model": ("cdlm", []),
    "questions-compared/systems/longformer-0/model": ("longformer", []),
    "paragraphs/model": ("cdlm", ["language modelling", "answers"]),
    "coreference/model": ("cdlm", []),
    "cdlm": ("longformer", []),
}


@pytest.mark.parametrize(
    "name", sorted(file.parent.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("config.json"))
)
def test_shipped_models_say_what_made_them(name: str) -> None:
    made = read_made(FOLDER / name)
    run = FOLDER / name.partition("/")[0] / "run.json"
    if run.is_file():
        assert made["parameters"] == json.loads(run.read_text())["parameters"]
    facts = facts_of(made, name)
    assert {"recipe", "corpus"} <= facts.keys() or "variant" not in facts, "columns by which tables group"
    began = began_with(FOLDER / name)
    base, after = SHIPPED.get(name, (None, None))
    if base in ("longformer", "cdlm") and "variant" in facts and after:
        assert facts["variant"] == base
        assert "head" in facts or facts["tasks"][: len(after)] == after
    if base:
        assert began == {"base": base, "after": after}
    assert (
        name in SHIPPED
        or began is None
        or name
        in (
            *("local-cdlm", "rand-cdlm", "prefix-cdlm"),
            *("answers/systems/pairwise-0/model", "claims/systems/claim-only-0/model"),
        )
    )


def step(experiment: str, system: str, parent: dict | None, name: str = "x") -> dict:
    return {"experiment": experiment, "system": system, "parent": parent and {"name": name, "made": parent}}


def test_recipes_are_equal_for_other_seeds_and_variants_alone() -> None:
    def recipe(parent: str = "", **parameters: object) -> str:
        given = {
            "variant": "cdlm",
            "corpus": "c",
            "model": parent or "tiny",
            "seed": 0,
            "steps": 4,
        } | parameters
        made = {"experiment": "pretraining", "parameters": given, "seed": given["seed"], "steps": 4}
        before = {"name": parent, "made": None} if parent else None
        return facts_of(made | {"parent": before}, "m")["recipe"]

    assert recipe() == recipe(seed=1, run_folder="x", precision="float32") == recipe(variant="longformer")
    assert len({recipe(), recipe(steps=5), recipe(parent="minilm"), recipe(parent="other")}) == 4


def test_a_lineage_is_a_language_model_and_what_it_learned_since() -> None:
    base = step("pretraining", "longformer", None)
    cdlm = step("pretraining", "cdlm", base)
    assert lineage(None, "allenai/longformer-base-4096") == ("allenai/longformer-base-4096", ())
    assert lineage(base, "x") == ("longformer", ())
    assert lineage(cdlm, "x") == ("cdlm", ())
    assert lineage(step("pretraining", "local-cdlm", cdlm), "x") == ("cdlm", ("language modelling",))
    claims = step("fact verification", "joint-ie", step("fact verification", "joint-ie", cdlm))
    assert lineage(claims, "x") == ("cdlm", ("claims",)), "twice in a row is said once"
    matched = step("document matching", "cdlm", claims)
    assert lineage(step("fact verification", "a", matched), "x")[1] == ("claims", "matching", "claims")
    unknown = step("answer selection", "pairwise", None) | {"parent": {"name": "minilm", "made": None}}
    assert lineage(unknown, "x") == ("minilm", ("answers",))
