"""A question or claim and its candidates read at once by one encoder (Di Liello et al. 2022, "MSPP"); the
baseline that reads pairs one at a time and pools them; and pre-training with paragraphs.

Every token attends to every other and none is global, so a converted BERT computes what BERT does. The states
of the sentences' first tokens are their embeddings E_0 ... E_k, the input of a head (sections 3.2 and 3.3):

    ie_1    linear(E_0)                    one label
    ae_1    linear(mean of E_0 ... E_k)    one label
    ie_k    linear(E_i)                    a label of each candidate
    ae_k    linear([E_0; E_i])             a label of each candidate

With k = 1 it is the pairwise cross-encoder. Choices where the paper is silent: the mean of `ae_1` is over the
sentences that are present; a linear head has no dropout. In the released code each head has a hidden layer
(`tanh` here), `ae_1` is a sum, and an absent candidate is read as an empty sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import torch
from pydantic import Field
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from transformers import (
    LongformerConfig,
    LongformerForMaskedLM,
    LongformerModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import ModelOutput

from cdlm_lab.attention.layer import LocalGlobalSelfAttention
from cdlm_lab.data.files import replaced_file
from cdlm_lab.encoders import checkpoint, encoder
from cdlm_lab.encoders.checkpoint import HEAD_FILE, CheckpointError, Model
from cdlm_lab.encoders.encoder import EncoderOptions, EncoderWithHead
from cdlm_lab.encoders.frozen import lengths_of
from cdlm_lab.encoders.language_model import CrossDocumentLM, Items, label_loss, masked_losses, over_items
from cdlm_lab.encoders.precision import as_weights, in_full
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.parameters import settings
from cdlm_lab.tasks.joint.examples import JointLayout

POOLINGS = ("max", "weighted_sum")
MADE_TO_MEASURE = (encoder.FROM_SCRATCH, "minilm")  # not folders: made with as many positions as are wanted
PAIR = 2  # sentences in a pair: claim and evidence
Labels = Annotated[int, Field(ge=2)]  # number of labels to choose from
Length = Annotated[int, Field(ge=2)]  # tokens of a sentence, the one in front included
Positions = Literal["strided", "compact"]


# ---- heads


@settings
class JointHead:
    """The head on the encoder, and the layout of the sequences that the model reads."""

    kind: Literal["ie_1", "ae_1", "ie_k", "ae_k"]
    labels: Labels = 2
    sentences: int = Field(default=6, ge=PAIR)  # k + 1: the question or claim and k candidates
    length: Length = 64
    positions: Positions = "strided"
    layers: Literal["linear", "tanh"] = "linear"  # `tanh`: dropout, linear, tanh, dropout, linear

    @property
    def layout(self) -> JointLayout:
        """The layout of the sequences that a model with this head reads."""
        return JointLayout(sentences=self.sentences, length=self.length, positions=self.positions)

    @property
    def of_candidates(self) -> bool:
        """True for `ie_k` and `ae_k`, which label each candidate."""
        return self.kind in ("ie_k", "ae_k")


class JointHeadLayers(nn.Module):
    """A head's layers, from sentence embeddings to logits; `config`: the encoder's, for size and dropout."""

    def __init__(self, head: JointHead, config: LongformerConfig) -> None:
        super().__init__()
        self.form = head
        size = config.hidden_size * (2 if head.kind == "ae_k" else 1)
        dropout, output = nn.Dropout(config.hidden_dropout_prob), nn.Linear(size, head.labels)
        hidden = (dropout, nn.Linear(size, size), nn.Tanh(), dropout) if head.layers == "tanh" else ()
        self.layers = nn.Sequential(*hidden, output)

    def forward(self, embeddings: Tensor, starts: Tensor) -> Tensor:
        """Logits, float32: (batch, k, labels), 0 for absent candidates, or (batch, labels). `embeddings`:
        (batch, k + 1, dim), 0 for absent sentences; `starts`: (batch, k + 1) long, -1 = absent."""
        with in_full(embeddings.device):
            embeddings = as_weights(embeddings, self.layers)
            question, candidates = embeddings[:, 0], embeddings[:, 1:]
            if self.form.kind == "ie_1":
                return self.layers(question).float()
            if self.form.kind == "ae_1":
                return self.layers(embeddings.sum(1) / (starts >= 0).sum(1, keepdim=True)).float()
            if self.form.kind == "ae_k":
                candidates = torch.cat([question[:, None].expand_as(candidates), candidates], dim=-1)
            return self.layers(candidates).masked_fill(starts[:, 1:, None] < 0, 0.0).float()


def sentence_states(
    model: LongformerModel, input_ids: Tensor, mask: Tensor, token_type_ids: Tensor, position_ids: Tensor
) -> Tensor:
    """The last hidden states, (batch, tokens, dim), for arguments of the shapes that `JointModel` takes."""
    first = model.embeddings.padding_idx + 1  # the row of position 0
    form = {"token_type_ids": token_type_ids, "position_ids": position_ids + first}
    return model(input_ids, mask, **form).last_hidden_state


def front_states(states: Tensor, starts: Tensor, *, sentences: int) -> Tensor:
    """The embeddings of sentences, (batch, k + 1, dim), 0 for absent ones: the `states` (batch, tokens, dim)
    of their first tokens at `starts` (batch, k + 1) long, -1 = absent. Raises ValueError unless the sequences
    have the given number of `sentences`, k + 1."""
    if starts.shape[1] != sentences:
        raise ValueError(
            f"the sequences have {starts.shape[1]} sentences, the model reads {sentences}; write them by the "
            "layout of its head"
        )
    rows = torch.arange(len(states), device=states.device)[:, None]
    return states[rows, starts.clamp(min=0)].masked_fill((starts < 0)[..., None], 0.0)


# ---- the head of paragraph pre-training, in a file beside the encoder


def write_head(layers: JointHeadLayers, folder: Path) -> None:
    """Write a head of paragraph pre-training, weights and settings, into the folder of its encoder."""
    weights = {name: weight.detach().cpu().contiguous() for name, weight in layers.state_dict().items()}
    with replaced_file(folder / HEAD_FILE, binary=True) as file:
        # One entry only: safetensors writes several in an order that changes from file to file.
        file.write(save(weights, metadata={"head": json.dumps(asdict(layers.form))}))


def paragraph_head(folder: str) -> tuple[JointHead, dict[str, Tensor]] | None:
    """The head that `write_head` left in a folder: its settings and its weights by name; None if there is
    none. Raises CheckpointError when the file is damaged or holds no such head."""
    file = Path(folder) / HEAD_FILE
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="pt") as opened:
            form = JointHead(**json.loads(opened.metadata()["head"]))
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except Exception as error:
        raise CheckpointError(
            f"{file}: no head of paragraph pre-training ({checkpoint.first_line(error)}); save the model "
            "again"
        ) from error
    checkpoint.refuse_not_finite(weights, str(file))
    return form, weights


def start_from_paragraph_head(layers: JointHeadLayers, folder: str) -> bool:
    """Initialise a head from the one in a folder, if there is one with the same kind, labels and layers;
    returns whether it did. Raises CheckpointError when the file is damaged or belongs to another model."""
    saved = paragraph_head(folder)
    shape = attrgetter("kind", "labels", "layers")
    if saved is None or shape(saved[0]) != shape(layers.form):
        return False
    try:
        layers.load_state_dict(saved[1])
    except RuntimeError as error:  # its message lists shapes over many lines
        raise CheckpointError(
            f"{folder}: {HEAD_FILE} is not of the encoder beside it; remove it, or save the model again"
        ) from error
    return True


# ---- loading encoders for sentences that are read together


class SentenceOptions(EncoderOptions):
    """Keyword options of every `load_...` function for a model over sentences that are read together."""

    head: Any  # settings of the head, with a `layout`; None (default) = those of the trained model
    new_head: bool  # True = load only the encoder of a trained model; default False


def load_on_sentences(
    model_class: type[Model],
    name_or_path: str | os.PathLike[str],
    *,
    head: Any | None = None,
    new_head: bool = False,
    seed: int = 0,
    load: Callable[..., tuple[PreTrainedModel, PreTrainedTokenizerFast]] = encoder.load_encoder,
    **options: Unpack[EncoderOptions],
) -> tuple[Model, PreTrainedTokenizerFast]:
    """A model over joint sequences, new on top of an encoder or trained from its folder, and its tokenizer.

    A new head starts from that of paragraph pre-training beside the encoder, if it has the same kind, labels
    and layers. An encoder with fewer token types than sentences gets more, as copies of its last one (in the
    released code they are random).

    Args:
        model_class: a class that keeps its encoder in `longformer` and its head's settings in `config.joint`.
        head: settings of the head, which have a `layout`; None = those of the trained model.
        new_head: True = load only a trained model's encoder.
        load: loads the encoder; a language-model head that it returns (`lm_head`) becomes part of the model.

    Raises ValueError: an encoder without `head`, a trained model with another one. CheckpointError: too few
    positions for the sentences; a damaged paragraph head.
    """
    name = os.fspath(name_or_path)
    head, trained = encoder.wanted_head(model_class, name, head, new=new_head)
    lengths = lengths_for(name, tokens=head.layout.tokens)
    if trained:
        model, tokenizer = encoder.load_trained(model_class, name, **lengths, **options)
    else:
        source, tokenizer = load(name, **lengths, **options, seed=seed)
        encoder.widen_token_types(source.base_model, head.layout.sentences)
        model = encoder.put_head_on(source, model_class, seed=seed, joint=asdict(head))
        if isinstance(head, JointHead):
            start_from_paragraph_head(model.head, name)
    see_all(model, tokens=head.layout.tokens)
    return model, tokenizer


def lengths_for(name: str, *, tokens: int) -> dict[str, int]:
    """The arguments `max_length` and `window` of `load_encoder` for sequences of up to `tokens` tokens, each
    of which attends to every other. A Longformer with fewer positions than the full window is loaded with a
    narrower one, which `see_all` widens afterwards. Raises CheckpointError if it has less than `tokens`."""
    lengths = lengths_of(max_tokens=tokens, window=None)
    if name in MADE_TO_MEASURE:
        return lengths
    config = checkpoint.read_config(str(checkpoint.shipped_folder(name) or name))
    if config.model_type != "longformer":
        return lengths
    room = config.max_position_embeddings - config.pad_token_id - 1
    if room < tokens:
        raise CheckpointError(
            f"{name}: reads {room} tokens, but the sentences may have {tokens} together; take fewer or "
            "shorter ones, or a longer checkpoint"
        )
    narrower = min(lengths["window"], room - room % 2)
    return {"max_length": min(lengths["max_length"], room), "window": narrower}


def see_all(model: nn.Module, *, tokens: int) -> None:
    """Let every token of a sequence of up to `tokens` attend to every other, in place: the total width of a
    Longformer's window, half of it on each side, becomes twice that."""
    for module in model.modules():
        if isinstance(module, LocalGlobalSelfAttention):
            module.window = 2 * tokens
        elif hasattr(module, "one_sided_attn_window_size"):  # Hugging Face's own
            module.one_sided_attn_window_size = tokens
    model.config.attention_window = [2 * tokens] * model.config.num_hidden_layers


# ---- joint reading


@dataclass
class JointOutput(ModelOutput):
    """What `JointModel` returns."""

    loss: Tensor | None = None  # () float32, summed cross entropy divided by the number of labels
    # float32, (batch, k, labels) for `ie_k` and `ae_k`, 0 for absent candidates; else (batch, labels)
    logits: Tensor | None = None
    embeddings: Tensor | None = None  # (batch, k + 1, dim), E_0 ... E_k, 0 for absent sentences


class _OnSentences:
    """Mixin for a model over joint sequences, whose config keeps its head's settings in the entry `joint`."""

    head_class: type[Any] = JointHead
    head_entry = "joint"


class JointModel(_OnSentences, EncoderWithHead):
    """A Longformer with a head; no token is global, so the global projections get no gradient."""

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.head = JointHeadLayers(JointHead(**config.joint), config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,  # (batch, tokens)
        attention_mask: Tensor,  # (batch, tokens), 1 = token, 0 = padding
        token_type_ids: Tensor,  # (batch, tokens), number of a token's sentence, 0 ... k
        position_ids: Tensor,  # (batch, tokens), from 0 for any encoder; padding has any valid one
        starts: Tensor,  # (batch, k + 1) long, position of each sentence's first token; -1 = absent
        labels: Tensor | None = None,  # (batch, k) for `ie_k` and `ae_k`, else (batch,); -100 = none
        num_items_in_batch: Items = None,  # labels of the whole effective batch
    ) -> JointOutput:
        """Label a batch of groups of sentences. Raises ValueError when their number of sentences is not the
        head's."""
        states = sentence_states(self.longformer, input_ids, attention_mask, token_type_ids, position_ids)
        embeddings = front_states(states, starts, sentences=self.head.form.sentences)
        logits = self.head(embeddings, starts)
        loss = label_loss(logits, labels, num_items_in_batch)
        return JointOutput(loss=loss, logits=logits, embeddings=embeddings)


def load_joint_model(
    name_or_path: str | os.PathLike[str], **options: Unpack[SentenceOptions]
) -> tuple[JointModel, PreTrainedTokenizerFast]:
    """A joint model on any encoder, or a trained one from its folder, and its tokenizer. Raises ValueError
    for an encoder without `head`, CheckpointError when it has too few positions for the sentences."""
    return load_on_sentences(JointModel, name_or_path, **options)


def scores_of(logits: Tensor) -> np.ndarray:
    """The log-odds of label 1, float64 (...), from logits (..., 2). Probabilities would often tie at 1.0.
    Raises ValueError unless there are two labels."""
    if logits.shape[-1] != 2:
        raise ValueError(f"logits are of {logits.shape[-1]} labels; log-odds are of two")
    values = logits.detach().cpu().double().numpy()
    return values[..., 1] - values[..., 0]


# ---- pairs read one at a time, and pooled


@settings
class PooledHead:
    """How the embeddings E_0 of the pairs of a claim with its pieces of evidence become the claim's label,
    and the layout of the pairs (table 8; the poolings are those of Tymoshenko and Moschitti 2021).

    `max` takes the largest value of each dimension; `weighted_sum` weights each E_0 by the softmax, over the
    claim's evidence, of w E_0. The paper does not say what the weights are computed from; w is a choice.
    """

    pooling: Literal["max", "weighted_sum"]
    labels: Labels = 3
    length: Length = 64
    positions: Positions = "strided"

    @property
    def layout(self) -> JointLayout:
        """The layout of a claim with one piece of evidence."""
        return JointLayout(sentences=PAIR, length=self.length, positions=self.positions)


@dataclass
class PooledOutput(ModelOutput):
    """What `PooledPairs` returns, float32."""

    loss: Tensor | None = None  # (), summed cross entropy divided by the number of claims
    logits: Tensor | None = None  # (claims, labels)
    # (pairs,), without gradient: how much of the pooled vector comes from a pair; they sum to 1 for a claim.
    # With `weighted_sum` the pair's weight, with `max` the share of dimensions in which it is the largest.
    shares: Tensor | None = None


class PooledPairs(_OnSentences, EncoderWithHead):
    """A Longformer, pooling and a linear layer; no token is global: global projections get no gradient."""

    head_class = PooledHead

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        form = PooledHead(**config.joint)
        # no bias, since it would cancel in the softmax
        self.score = nn.Linear(config.hidden_size, 1, bias=False) if form.pooling == "weighted_sum" else None
        self.classifier = nn.Linear(config.hidden_size, form.labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,  # (pairs, tokens); this and the next three have the form that `JointModel` takes
        attention_mask: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor,
        starts: Tensor,  # (pairs, 2) long, of claim and evidence; -1 = absent, e.g. when a claim has none
        claim: Tensor,  # (pairs,) long, number of the pair's claim, from 0; each claim has a pair
        labels: Tensor | None = None,  # (claims,), -100 = none
        num_items_in_batch: Items = None,  # labels of the whole effective batch
    ) -> PooledOutput:
        """Label a batch of claims, each with at least one pair."""
        states = sentence_states(self.longformer, input_ids, attention_mask, token_type_ids, position_ids)
        read = front_states(states, starts, sentences=PAIR)[:, 0]  # (pairs, dim)
        claims = int(claim.max()) + 1 if labels is None else len(labels)
        with in_full(read.device):
            if self.score is None:
                pooled, shares = largest(read.float(), claim, claims=claims)
            else:
                scores = self.score(as_weights(read, self.score))[:, 0].float()
                pooled, shares = weighted_sum(read.float(), scores, claim, claims=claims)
            logits = self.classifier(as_weights(pooled, self.classifier)).float()
        loss = label_loss(logits, labels, num_items_in_batch)
        return PooledOutput(loss=loss, logits=logits, shares=shares.detach())


def largest(read: Tensor, claim: Tensor, *, claims: int) -> tuple[Tensor, Tensor]:
    """The largest value of each dimension of `read` (pairs, dim) over the pairs of a claim, (claims, dim);
    and for each pair the share of dimensions in which it has it, (pairs,), with ties split evenly. `claim`:
    (pairs,) long, number of the pair's claim; each claim must have a pair."""
    pooled = read.new_full((claims, read.shape[1]), -torch.inf)
    pooled = pooled.scatter_reduce(0, claim[:, None].expand_as(read), read, "amax")
    wins = (read == pooled[claim]).to(read.dtype)
    winners = torch.zeros_like(pooled).index_add(0, claim, wins)
    return pooled, (wins / winners[claim]).mean(1)


def weighted_sum(read: Tensor, scores: Tensor, claim: Tensor, *, claims: int) -> tuple[Tensor, Tensor]:
    """The sum of `read` (pairs, dim) over the pairs of a claim, (claims, dim), weighted by the softmax of the
    pairs' `scores` (pairs,) within the claim; and these weights, (pairs,)."""
    top = scores.new_full((claims,), -torch.inf).scatter_reduce(0, claim, scores.detach(), "amax")
    powers = (scores - top[claim]).exp()
    weights = powers / powers.new_zeros(claims).index_add(0, claim, powers)[claim]
    return read.new_zeros(claims, read.shape[1]).index_add(0, claim, weights[:, None] * read), weights


def load_pooled_pairs(
    name_or_path: str | os.PathLike[str], **options: Unpack[SentenceOptions]
) -> tuple[PooledPairs, PreTrainedTokenizerFast]:
    """A model of pooled pairs on any encoder, or a trained one from its folder, and its tokenizer. Raises
    ValueError for an encoder without `head`, CheckpointError when it has too few positions."""
    return load_on_sentences(PooledPairs, name_or_path, **options)


# ---- pre-training with paragraphs


@dataclass
class ParagraphOutput(ModelOutput):
    """What `ParagraphModel` returns, float32."""

    loss: Tensor | None = None  # (), the sum of both `parts`; None without labels
    logits: Tensor | None = None  # (batch, k, 2), of the candidates; 0 for absent ones
    parts: dict[str, Tensor] | None = None  # `mlm` and `mspp` -> (), without gradient; None without labels
    # (batch,), summed cross entropy of an example's masked tokens; None with labels, or without masked tokens
    nats: Tensor | None = None


class ParagraphModel(_OnSentences, LongformerForMaskedLM):
    """Predicts which of k sentences are from the same paragraph as s_0 (MSPP, "multi-sentences in paragraph
    prediction"), and the masked tokens (section 3.4 and appendix B): a Longformer with its language-model
    head and a head of candidates with two labels, `ie_k` or `ae_k`.

    The loss is the sum of two, "equally weighted": `mspp`, the mean cross entropy of the candidates, and
    `mlm`, the mean over examples of the mean cross entropy of their masked tokens. The paper does not say
    what the second mean is over; the released code takes all masked tokens of a micro-batch. Here an example
    weighs as much as it has candidates, so that micro-batches add up to the full batch with a single count,
    that of candidates. No token is global, so the global projections get no gradient.
    """

    # the training loop then counts the candidates of the whole effective batch
    accepts_loss_kwargs = True
    loss_parts = ("mlm", "mspp")

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        head = JointHead(**config.joint)
        if not head.of_candidates or head.labels != 2:
            raise ValueError(
                f"the head is {head.kind} of {head.labels} labels; paragraphs need ie_k or ae_k of two"
            )
        self.head = JointHeadLayers(head, config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,  # (batch, tokens); this and the next four have the form that `JointModel` takes
        attention_mask: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor,
        starts: Tensor,
        labels: Tensor | None = None,  # (batch, k), 1 = same paragraph as s_0, 0 = another, -100 = absent
        mlm_labels: Tensor | None = None,  # (batch, tokens), original token where masked, else -100
        num_items_in_batch: Items = None,  # candidates of the whole effective batch
    ) -> ParagraphOutput:
        """Predict both tasks on a batch of examples. Raises ValueError when the number of sentences is not
        the head's."""
        states = sentence_states(self.longformer, input_ids, attention_mask, token_type_ids, position_ids)
        logits = self.head(front_states(states, starts, sentences=self.head.form.sentences), starts)
        if mlm_labels is None:
            return ParagraphOutput(logits=logits)
        masked = mlm_labels != NOT_MASKED
        example = masked.nonzero()[:, 0]  # (n_masked,)
        of_tokens, _ = masked_losses(self.lm_head, states[masked], mlm_labels[masked].long())  # (n_masked,)
        if labels is None:
            nats = of_tokens.new_zeros(len(masked)).index_add(0, example, of_tokens)
            return ParagraphOutput(logits=logits, nats=nats)
        candidates = (labels != NOT_MASKED).sum(1)  # (batch,)
        # weights each token by its example's candidates over its example's masked tokens
        weight = (candidates / masked.sum(1).clamp(min=1))[example]
        mlm = over_items(
            (of_tokens * weight).sum(), items=candidates.sum(), num_items_in_batch=num_items_in_batch
        )
        mspp = label_loss(logits, labels, num_items_in_batch)
        return ParagraphOutput(
            loss=mlm + mspp, logits=logits, parts={"mlm": mlm.detach(), "mspp": mspp.detach()}
        )


def load_paragraph_model(
    name_or_path: str | os.PathLike[str], **options: Unpack[SentenceOptions]
) -> tuple[ParagraphModel, PreTrainedTokenizerFast]:
    """A model to pre-train, on top of any language model, and its tokenizer. An encoder without
    language-model head, such as `minilm`, gets a new one, with a warning.

    `name_or_path`: a language model; a folder that `save_paragraph_model` wrote, whose head is trained
    further if it has the same kind and layers; or the folder of a saved `ParagraphModel`.
    """
    load = partial(encoder.load_language_model, new_head=True)
    return load_on_sentences(ParagraphModel, name_or_path, load=load, **options)


def save_paragraph_model(
    model: ParagraphModel, tokenizer: PreTrainedTokenizerFast, folder: str | os.PathLike[str]
) -> None:
    """Write the result of pre-training into a folder: a plain `LongformerForMaskedLM`, which loads wherever a
    model is named, and beside it its head, from which `load_joint_model` starts."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = deepcopy(model.config)
    del config.joint
    with torch.device("meta"):  # all its weights are replaced below
        plain = CrossDocumentLM(config)
    plain.longformer, plain.lm_head = model.longformer, model.lm_head
    write_head(model.head, folder)
    with checkpoint.without_bars():
        plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
