"""Cut attention: the oracle in every backend, a document alone, chosen layers and heads, the control."""

from collections.abc import Callable

import pytest
import torch
from attention_cases import DIM, HEADS, SHAPES, inputs_of, longformer, packed, setting_of, unpacked
from test_backends import BACKENDS
from torch import Tensor
from transformers import LongformerModel

from cdlm_lab.attention.cut import Cut, cutting, documents_of, edges_cut
from cdlm_lab.attention.dense import dense_attention, dense_weights
from cdlm_lab.attention.flex import flex_packed_attention
from cdlm_lab.attention.plan import Projections, by_head, make_plan
from cdlm_lab.attention.weights import AttentionRecorder
from cdlm_lab.encoders.packed import replace_self_attention

START, END = 50, 51


def halves(batch: int, seq: int) -> Tensor:
    """Two documents in each row, and a token outside at its beginning and its end."""
    documents = (torch.arange(seq) >= seq // 2).long().repeat(batch, 1)
    documents[:, 0], documents[:, -1] = -1, -2
    return documents


@pytest.mark.parametrize("edges", ["documents", "random"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_outputs_and_gradients_equal_the_oracle(backend: Callable, shape: str, edges: str) -> None:
    setting, inputs = setting_of(shape), inputs_of(*SHAPES[shape][:2])
    plan = make_plan(**setting)
    cut = edges_cut(plan, halves(*plan.shape), edges=edges)
    weight = torch.randn(*plan.shape, HEADS, DIM, dtype=torch.float64)
    output = unpacked(backend(packed(inputs, plan.without(cut)), plan=plan.without(cut)), plan)
    expected = dense_attention(inputs, **setting, cut=cut)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
    form = {"allow_unused": True, "materialize_grads": True}
    gradients = [torch.autograd.grad((one * weight).sum(), inputs, **form) for one in (output, expected)]
    for gradient, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_flex_attention_and_recorded_weights_equal_the_oracle(shape: str) -> None:
    setting = setting_of(shape)
    inputs = Projections(*(one.detach() for one in inputs_of(*SHAPES[shape][:2])))
    plan = make_plan(**setting)
    cut = edges_cut(plan, halves(*plan.shape), edges="documents")
    plan = plan.without(cut)
    output = unpacked(flex_packed_attention(packed(inputs, plan), plan=plan), plan)
    torch.testing.assert_close(output, dense_attention(inputs, **setting, cut=cut), rtol=0, atol=1e-12)
    weights = dense_weights(inputs, **setting, cut=cut)
    tokens = torch.arange(min(5, int(setting["attention_mask"].sum(1).min()))).repeat(plan.shape[0], 1)
    recorder = AttentionRecorder(tokens)
    recorder.record(packed(inputs, plan), plan)
    chosen = slice(0, tokens.shape[1])
    torch.testing.assert_close(recorder.from_tokens[0].double(), weights[:, :, chosen], rtol=0, atol=1e-5)
    received = recorder.to_tokens[0].double().transpose(2, 3)
    torch.testing.assert_close(received, weights[..., chosen], rtol=0, atol=1e-5)


def test_a_cut_document_equals_the_document_alone() -> None:
    """No token outside both joins them; global tokens are in either."""
    setting, inputs = setting_of("several blocks"), inputs_of(*SHAPES["several blocks"][:2])
    plan = make_plan(**setting)
    documents = (torch.arange(300) >= 140).long().repeat(2, 1)
    plan = plan.without(edges_cut(plan, documents, edges="documents"))
    whole = unpacked(BACKENDS["sparse"](packed(inputs, plan), plan=plan), plan)
    for part in (slice(0, 140), slice(140, 300)):
        masks = {name: setting[name][:, part] for name in ("attention_mask", "global_mask")}
        alone = Projections(*(one[:, part] for one in inputs))
        expected = dense_attention(alone, **masks, window=setting["window"])
        torch.testing.assert_close(whole[:, part], expected, rtol=0, atol=1e-12)


def test_chosen_heads_alone_are_cut() -> None:
    setting, inputs = setting_of("several blocks"), inputs_of(*SHAPES["several blocks"][:2])
    plan = make_plan(**setting)
    cut = edges_cut(plan, halves(*plan.shape), edges="documents")
    one = plan.without(cut, heads=(1,))
    made = unpacked(by_head(lambda of: BACKENDS["sparse"](packed(inputs, plan), plan=of), one), plan)
    for head, forbidden in enumerate((None, cut)):
        expected = dense_attention(inputs, **setting, cut=forbidden)[:, :, head]
        torch.testing.assert_close(made[:, :, head], expected, rtol=0, atol=1e-12)


def test_the_control_cuts_as_many_edges_within_documents_from_its_seed() -> None:
    setting = setting_of("several blocks")
    plan, documents = make_plan(**setting), halves(2, 300)
    across, drawn, again, other = (
        edges_cut(plan, documents, edges=edges, seed=seed)
        for edges, seed in (("documents", 0), ("random", 0), ("random", 0), ("random", 1))
    )
    ones = Projections(*(torch.ones(2, 300, 1, 1) for _ in Projections._fields))
    sees = dense_weights(ones, **setting)[:, 0] > 0
    assert (across & sees).sum() == drawn.sum() > 1000
    assert not (drawn & (across | ~sees)).any()
    assert not drawn.diagonal(dim1=1, dim2=2).any()
    assert torch.equal(drawn, again)
    assert not torch.equal(drawn, other)
    shorter = make_plan(
        **{**setting, **{name: setting[name][1:, :240] for name in ("attention_mask", "global_mask")}}
    )
    alone = edges_cut(shorter, documents[1:, :240], edges="random")
    assert torch.equal(alone[0], drawn[1, :240, :240]), "a text's edges depend on it alone, not on its batch"


def sequence() -> Tensor:
    """Two documents of 20 tokens, far apart for a window of 8, between `<s>` and `</s>`."""
    words = torch.randint(5, 40, (2, 20), generator=torch.Generator().manual_seed(0))
    return torch.tensor([[0, START, *words[0], END, START, *words[1], END, 2]])


@pytest.mark.parametrize("backend", ["sparse", "dense"])
def test_a_model_reads_documents_apart_inside_the_block_alone(backend: str) -> None:
    model = replace_self_attention(longformer(LongformerModel), backend)
    ids, is_global = sequence(), torch.zeros(1, 46, dtype=torch.long)
    is_global[0, [5, 30]] = 1  # a token of each document
    changed = ids.clone()
    changed[0, 30] = 7

    def states(given: Tensor) -> Tensor:
        with torch.no_grad():
            return model(given, global_attention_mask=is_global).last_hidden_state[0, 1:18]

    assert not torch.allclose(states(ids), states(changed)), "the first document sees the second"
    with cutting(model, Cut(), separators=(START, END)):
        torch.testing.assert_close(states(ids), states(changed), rtol=0, atol=1e-6)
    with cutting(model, Cut(layers=(0,)), separators=(START, END)):
        assert not torch.allclose(states(ids), states(changed))
    assert not torch.allclose(states(ids), states(changed))


def test_documents_are_between_separators_in_any_batch() -> None:
    ids = torch.cat([sequence(), torch.full((1, 46), 1)])
    documents = documents_of(ids, (START, END))
    assert documents[0].tolist() == [-1, *[0] * 22, *[1] * 22, -2]
    assert (documents[1] == -1).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sentences", "edges of a cut"),
        ({"layer": [1]}, "cut has 'layer'; it can have edges, layers, heads, seed"),
    ],
)
def test_a_cut_that_is_none_is_refused(given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cut.of(given)


@pytest.mark.parametrize(
    ("cut", "message"), [(Cut(layers=(3,)), "no layer 3"), (Cut(heads=(4,)), "no head 4")]
)
def test_layers_and_heads_that_there_are_not_are_refused(cut: Cut, message: str) -> None:
    model = replace_self_attention(longformer(LongformerModel))
    with pytest.raises(ValueError, match=message), cutting(model, cut, separators=(START, END)):
        pass
