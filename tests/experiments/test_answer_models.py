"""From a system's name to a model: its head and layout, where it starts, what it is trained on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.experiments.answer_selection import ANSWER_SYSTEMS, AnswerModels, new_ranker
from cdlm_lab.models.joint import JointHead, load_paragraph_model, save_paragraph_model
from cdlm_lab.parameters import ParameterError

MODELS = AnswerModels(candidates=3, sentence_length=8, pairwise_length=12, head_layers="tanh")


def pretrained(folder: Path, kind: str) -> Path:
    """As notebook 08 leaves it, but not trained."""
    head = replace(MODELS.head_of(ANSWER_SYSTEMS["mspp-ie"]), kind=kind)
    save_paragraph_model(*load_paragraph_model("storyworld/longformer", head=head, seed=7), folder / "model")
    return folder


def test_heads_and_layouts():
    pairwise = MODELS.head_of(ANSWER_SYSTEMS["pairwise"])
    assert pairwise == JointHead(kind="ie_1", sentences=2, length=12, positions="compact", layers="tanh")
    joint = MODELS.head_of(ANSWER_SYSTEMS["mspp-ae"])
    assert joint == JointHead(kind="ae_k", sentences=4, length=8, positions="strided", layers="tanh")
    compact = replace(MODELS, positions="compact").head_of(ANSWER_SYSTEMS["joint-ie"])
    assert (compact.kind, compact.positions) == ("ie_k", "compact")


def test_systems_without_mspp_start_from_the_encoder():
    models = replace(MODELS, encoder="minilm")
    for name in ("pairwise", "joint-ie", "joint-ae"):
        assert models.checkpoint_of(ANSWER_SYSTEMS[name]) == "minilm"


def test_systems_with_mspp_start_from_their_own_with_its_head(tmp_path: Path):
    folder = pretrained(tmp_path, "ae_k")
    models, system = replace(MODELS, mspp=str(folder)), ANSWER_SYSTEMS["mspp-ae"]
    source = models.checkpoint_of(system)
    assert source == str(folder / "model")
    # another seed than the head was drawn with
    head = new_ranker(source, models.head_of(system), seed=1).model.head.state_dict()
    drawn, _ = load_paragraph_model("storyworld/longformer", head=models.head_of(system), seed=7)
    assert all(torch.equal(head[name], weight) for name, weight in drawn.head.state_dict().items())


def test_a_checkpoint_that_is_not_given_is_named(tmp_path: Path):
    system = ANSWER_SYSTEMS["mspp-ie"]
    with pytest.raises(ParameterError, match='mspp is ""'):
        MODELS.checkpoint_of(system)
    with pytest.raises(ParameterError, match="where there is no model"):
        replace(MODELS, mspp=str(tmp_path)).checkpoint_of(system)
    other = replace(MODELS, mspp=str(pretrained(tmp_path, "ae_k")))
    with pytest.raises(ParameterError, match="which was pretrained with ae_k"):
        other.checkpoint_of(system)


def test_training_reads_other_groups_in_each_pass_and_testing_the_same():
    sets = [
        CandidateSet(
            id=name,
            question="Who?",
            candidates=tuple(f"It was {number}." for number in range(7)),
            correct=(True, *[False] * 6),
        )
        for name in "ab"
    ]
    ranker = new_ranker("storyworld/longformer", MODELS.head_of(ANSWER_SYSTEMS["joint-ie"]), seed=0)
    fixed = ranker.examples(sets)
    assert len(fixed) == 6
    assert [fixed.owner(number)[0] for number in range(6)] == [0, 0, 0, 1, 1, 1]
    given = ranker.training_examples(sets, size=24, seed=3)
    assert len(given) == 24
    passes = [
        [(number, *members.tolist()) for number, members in map(given.owner, range(6 * first, 6 * first + 6))]
        for first in range(4)
    ]
    for one in passes:
        assert sorted(member for number, *members in one if number == 0 for member in members) == [*range(7)]
    assert len({tuple(sorted(map(tuple, one))) for one in passes}) == 4
    again = ranker.training_examples(sets, size=24, seed=4)
    assert [again.owner(0)[0], *again.owner(0)[1]] != [given.owner(0)[0], *given.owner(0)[1]] or any(
        not np.array_equal(again.owner(at)[1], given.owner(at)[1]) for at in range(6)
    )
    example = given[0]
    assert set(example["labels"].tolist()) <= {0, 1, -100}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"systems": "pairwise joint"}, "systems names 'joint'"),
        ({"candidates": 1}, "candidates is 1; it must be at least 2"),
        ({"positions": "dense"}, "positions is 'dense'; choose one of strided, compact"),
        ({"head_layers": "mlp"}, "head_layers is 'mlp'; choose one of linear, tanh"),
        ({"pairwise_length": 1}, "pairwise_length is 1"),
    ],
)
def test_values_that_cannot_be(given: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        AnswerModels(**given)
