"""Cases for every model with a loss: how it is made, and a batch for it. test_contract.py tests the rules
that all models share; what is particular to one model is tested in a separate file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from cdlm_lab.data.convert.tagged import TaggedDocument, TaggedSentence, tag_set
from cdlm_lab.tasks.joint.examples import JointCollate, JointLayout, PairedClaimCollate, joint_sequence
from cdlm_lab.tasks.multihop.examples import NO, SPAN, YES, QuestionCollate
from cdlm_lab.tasks.tagging.examples import SplitDocument, TagExample, TagExamples
from cdlm_lab.examples.tokens import Vocabulary, from_tokenizer
from cdlm_lab.encoders.checkpoint import is_trained, read_own_model
from cdlm_lab.tasks.coreference.model import load_pair_scorer
from cdlm_lab.encoders.encoder import load_language_model
from cdlm_lab.tasks.joint.model import (
    JointHead,
    JointModel,
    PooledHead,
    load_joint_model,
    load_paragraph_model,
    load_pooled_pairs,
)
from cdlm_lab.tasks.matching.model import (
    DocumentMatcher,
    HierarchicalConfig,
    load_finetuned_matcher,
    load_pair_classifier,
)
from cdlm_lab.tasks.multihop.model import load_question_answerer
from cdlm_lab.tasks.tagging.model import (
    DynamicCollate,
    StaticCollate,
    StaticTaggerConfig,
    TaggerHead,
    load_dynamic_tagger,
    load_static_tagger,
    new_static_tagger,
)

Batch = dict[str, Tensor]
Loaded = tuple[PreTrainedModel, PreTrainedTokenizerFast | None]

SHORT = {"max_length": 32, "window": 8}


WORDS = [f"w{number}" for number in range(50)]


def word_tokenizer(pad: int) -> PreTrainedTokenizerFast:
    """Make a word tokenizer in which [PAD] has the id `pad`: 0 for BERT, 1 for RoBERTa and Longformer."""
    special = ["[PAD]", "[CLS]"] if pad == 0 else ["[CLS]", "[PAD]"]
    words = [*special, "[SEP]", "[UNK]", "[MASK]", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(word, words.index(word)) for word in ("[CLS]", "[SEP]")]
    )
    names = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": word for name, word in names.items()}
    )


def saved(folder: Path, *parts: Any) -> Path:
    """Save models and tokenizers in one folder and return it."""
    for part in parts:
        part.save_pretrained(folder)
    return folder


# ---- pairs of texts in one sequence, for `tiny` with 64 tokens; the first and all read tokens are global

LENGTHS = (40, 24, 33, 29)


def texts() -> Batch:
    """Return four random texts of 24 to 40 tokens, padded to 40; the first token is global."""
    batch = {
        "input_ids": torch.randint(10, 290, (4, 40), generator=torch.Generator().manual_seed(0)),
        "attention_mask": torch.zeros(4, 40, dtype=torch.int64),
        "global_attention_mask": torch.zeros(4, 40, dtype=torch.int64),
    }
    batch["global_attention_mask"][:, 0] = 1
    for row, length in enumerate(LENGTHS):
        batch["attention_mask"][row, :length] = 1
        batch["input_ids"][row, length:] = 1  # the padding token
    return batch


def classified() -> Batch:
    return texts() | {"labels": torch.tensor([1, 0, 0, 1])}


def masked(*, globals_: bool) -> Batch:
    """Mask every fifth token; `globals_`: True = every second of these and the first token are global."""
    batch = texts()
    is_masked = (torch.arange(40) % 5 == 3) & (batch["attention_mask"] == 1)
    batch["labels"] = torch.where(is_masked, batch["input_ids"], -100)
    batch["input_ids"] = batch["input_ids"].masked_fill(is_masked, 4)
    batch["global_attention_mask"][:, 3::10] = 1
    batch["global_attention_mask"] *= batch["attention_mask"] * globals_
    return batch


def wider_masked(batch: Batch) -> Batch:
    return wider_texts(batch) | {"labels": pad(batch["labels"], (0, 5), value=-100)}


def scored() -> Batch:
    """Return pairs to score, with two mentions of 1 to 3 tokens each, which are global."""
    batch = texts() | {"mention_mask": torch.zeros(4, 2, 40, dtype=torch.bool)}
    batch["global_attention_mask"][:, 5] = 1
    for row in range(4):
        for mention, start in enumerate((6, 15)):
            where = slice(start, start + 1 + (row + mention) % 3)
            batch["mention_mask"][row, mention, where] = True
            batch["global_attention_mask"][row, where] = 1
    return batch | {"labels": torch.tensor([1.0, 0.0, 0.0, 1.0])}


def row_of(batch: Batch, row: int) -> Batch:
    """Return one row without padding: tensors as wide as `input_ids` are truncated to the row's tokens."""
    width, wide = int(batch["attention_mask"][row].sum()), batch["input_ids"].shape[1]
    return {
        name: (values[..., :width] if values.dim() > 1 and values.shape[-1] == wide else values)[
            row : row + 1
        ]
        for name, values in batch.items()
    }


def wider_texts(batch: Batch) -> Batch:
    """Change the token ids of padding, and add five more positions of padding."""
    ids = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, 77)
    wide = {name: pad(values, (0, 5)) for name, values in batch.items() if name != "labels"}
    return batch | wide | {"input_ids": pad(ids, (0, 5), value=88)}


# ---- questions over paragraphs

PARAGRAPHS = ([6, 20], [5], [7, 15, 24], [4, 12])  # positions of the paragraphs' marks <t>
SENTENCES = ([9, 14, 24, 30], [8], [10, 18, 26, 29], [7, 15])
OCCURRENCES = ([[10, 12], [25, 25]], [], [[11, 11]], [])
TYPES = (SPAN, SPAN, YES, NO)
SENTENCE_LABELS = ([1, 0, 1, 0], [1], [0, 0, 1, 1], [0, 0])
PARAGRAPH_LABELS = ([1, 1], [0], [0, 1, 1], [1, 0])
ANSWER_LABELS = ("labels", "answer_positions", "sentence_labels", "paragraph_labels")


def question(number: int) -> dict[str, np.ndarray]:
    """Make an example of a question: [CLS] and two tokens of question, then paragraphs with their marks."""
    length = LENGTHS[number]
    read = [*PARAGRAPHS[number], *SENTENCES[number]]
    is_global, answerable = np.zeros(length, dtype=np.int64), np.ones(length, dtype=bool)
    is_global[[0, 1, 2, *read]] = 1
    answerable[[0, 1, 2, *read, length - 1]] = False
    return {
        "input_ids": np.random.default_rng(number).integers(10, 290, size=length),
        "global_attention_mask": is_global,
        "answerable": answerable,
        "paragraph_positions": np.array(PARAGRAPHS[number]),
        "sentence_positions": np.array(SENTENCES[number]),
        "labels": np.array(TYPES[number]),
        "answer_positions": np.array(OCCURRENCES[number], dtype=np.int64).reshape(-1, 2),
        "sentence_labels": np.array(SENTENCE_LABELS[number]),
        "paragraph_labels": np.array(PARAGRAPH_LABELS[number]),
    }


def questions(*numbers: int) -> Batch:
    """Batch of questions answered by a span that occurs twice, by one that does not, by yes, and by no."""
    return QuestionCollate(pad_token_id=1)([question(number) for number in numbers or range(4)])


def wider_questions(batch: Batch) -> Batch:
    ids = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, 77)
    fills = {
        "sentence_positions": -1,
        "paragraph_positions": -1,
        "sentence_labels": -100,
        "paragraph_labels": -100,
    }
    wide = {
        name: pad(batch[name], (0, 5)) for name in ("attention_mask", "global_attention_mask", "answerable")
    }
    wide |= {name: pad(batch[name], (0, 3), value=fill) for name, fill in fills.items()}
    answers = pad(batch["answer_positions"], (0, 0, 0, 2), value=-1)
    return batch | wide | {"input_ids": pad(ids, (0, 5), value=88), "answer_positions": answers}


# ---- sentences read together, on a BERT of 24 positions

K, LENGTH = 2, 8
LAYOUT = {"sentences": K + 1, "length": LENGTH}
PIECES: list[list[int | None]] = [[3, 6, 11], [2, None, 4], [5, 0, 7]]  # one is cut, one absent, one empty
JOINT_LABELS = {"k": torch.tensor([[1, 0], [-100, 1], [0, -100]]), "1": torch.tensor([2, 0, 1])}
JOINT_HEADS = {
    f"{kind} {layers}": JointHead(kind=kind, layers=layers, labels=3 if kind.endswith("1") else 2, **LAYOUT)
    for kind in ("ie_1", "ae_1", "ie_k", "ae_k")
    for layers in ("linear", "tanh")
}
POOLED_HEADS = {name: PooledHead(pooling=name, length=8) for name in ("max", "weighted_sum")}
OF_SEQUENCE = ("input_ids", "token_type_ids", "position_ids", "starts")


def sequences(
    tokenizer: PreTrainedTokenizerFast,
    pieces: Sequence[Sequence[int | None]] = PIECES,
    *,
    positions: str = "strided",
    labels: Tensor | None = None,
) -> Batch:
    """Make joint sequences; `pieces`: numbers of random subwords of the sentences, None = absent."""
    random, special = np.random.default_rng(0), from_tokenizer(tokenizer)
    layout = JointLayout(positions=positions, **LAYOUT)
    groups = ([None if n is None else random.integers(5, 55, n) for n in group] for group in pieces)
    made = [joint_sequence(group, layout=layout, special=special) for group in groups]
    batch = JointCollate(special.pad)([{name: getattr(one, name) for name in OF_SEQUENCE} for one in made])
    return batch if labels is None else batch | {"labels": labels}


def own_token_types(loaded: Loaded) -> Loaded:
    """Make the token type embeddings differ: copied, equal ones would hide the use of a wrong one."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        nn.init.normal_(loaded[0].longformer.embeddings.token_type_embeddings.weight, std=0.5)
    return loaded


def wider_sequences(batch: Batch) -> Batch:
    padding = batch["attention_mask"] == 0
    assert padding.any()
    garbage = {"input_ids": 33, "position_ids": 9, "token_type_ids": 1}
    return batch | {name: batch[name].masked_fill(padding, value) for name, value in garbage.items()}


EVIDENCE = ([4, 7, 2], [5], [])  # number of subwords of each sentence of evidence, for three claims
CLAIM = [0, 0, 0, 1, 2]


def claims(tokenizer: PreTrainedTokenizerFast) -> Batch:
    """Make a batch of three claims, one of them without evidence, in five pairs of claim and evidence."""
    random, special = np.random.default_rng(0), from_tokenizer(tokenizer)
    layout, examples = JointLayout(sentences=4, length=8), []
    for evidence, label in zip(EVIDENCE, torch.tensor([2, 0, 1]), strict=True):
        pieces = [random.integers(5, 55, n) for n in (3, *evidence)] + [None] * (3 - len(evidence))
        one = joint_sequence(pieces, layout=layout, special=special)
        examples.append({name: getattr(one, name) for name in OF_SEQUENCE} | {"labels": label.numpy()})
    return PairedClaimCollate(special.pad, layout)(examples)


def some_pairs(batch: Batch, pairs: list[int], claims: list[int]) -> Batch:
    """Select some pairs, and renumber their claims from 0."""
    taken = {name: values[pairs] for name, values in batch.items() if name != "labels"}
    numbers = torch.tensor([claims.index(number) for number in taken["claim"].tolist()])
    return taken | {"claim": numbers, "labels": batch["labels"][claims]}


PARAGRAPH_FORM = {"sentences": 4, "length": 6}
PARAGRAPH_HEADS = {
    "ie_k": JointHead(kind="ie_k", **PARAGRAPH_FORM),
    "ae_k": JointHead(kind="ae_k", layers="tanh", **PARAGRAPH_FORM),
}
PARAGRAPH_PIECES = [[3, 5, 2, 4], [5, 1, None, 3], [4, 2, 2, 5]]
MSPP_LABELS = torch.tensor([[1, 0, 0], [0, -100, 1], [-100, 1, -100]])
MASKED = [[1, 3, 5, 6], [2, 9], []]  # positions of the masked tokens of each example


def paragraphs(tokenizer: PreTrainedTokenizerFast, head: JointHead) -> Batch:
    random, special = np.random.default_rng(0), from_tokenizer(tokenizer)
    examples = []
    for pieces, labels, masked in zip(PARAGRAPH_PIECES, MSPP_LABELS, MASKED, strict=True):
        sentences = [None if n is None else random.integers(5, 55, n) for n in pieces]
        one = joint_sequence(sentences, layout=head.layout, special=special)
        mlm_labels = np.full_like(one.input_ids, -100)
        mlm_labels[masked] = one.input_ids[masked]
        one.input_ids[masked] = special.mask
        example = {name: getattr(one, name) for name in OF_SEQUENCE}
        examples.append(example | {"labels": labels.numpy(), "mlm_labels": mlm_labels})
    return JointCollate(special.pad)(examples)


# ---- documents of sentences

MATCHERS = [("gru", "none"), ("gru", "shallow"), ("gru", "deep"), ("vectors", "none"), ("vectors", "shallow")]
MATCHERS += [("average", "none")]
MAX_TOKENS = 8
SHALLOW = {"encoder": "vectors", "cda": "shallow", "hidden_size": 5, "initializer_range": 0.4}
# Three pairs; one sentence has too many words, one contains a special token as text, one has no words.
DOCUMENTS = [
    (["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11 w12"], ["w2 w13"]),
    (["w20 w21"], ["w22 w23 [SEP] w24", "w1 w2 w3"]),
    (["w30", "w31 w32 w33 w34 w35 w36"], [" ", "w4"]),
]


def matcher_of(encoder: str, cda: str) -> DocumentMatcher:
    sizes = {"vocabulary_size": 30, "word_size": 5, "vector_size": 6, "hidden_size": 4}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        config = HierarchicalConfig(encoder=encoder, cda=cda, initializer_range=0.4, **sizes)
        return DocumentMatcher(config).eval()


def document_pairs(encoder: str) -> Batch:
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(4, 2, 3, generator=generator).sort(descending=True).values > 0.4
    mask[..., 0] = True
    words = torch.randint(1, 30, (4, 2, 3, 4), generator=generator) * mask[..., None]
    vectors = torch.randn(4, 2, 3, 6, generator=generator)
    labels = torch.tensor([1.0, 0.0, 0.0, 1.0])
    return {"inputs": words if encoder == "gru" else vectors, "sentence_mask": mask, "labels": labels}


def sentences_of_documents(tokenizer: PreTrainedTokenizerFast) -> Batch:
    """Return DOCUMENTS as word ids, padded to four sentences of ten words."""
    vocabulary = Vocabulary.of_tokenizer(tokenizer)
    inputs, mask = torch.zeros(3, 2, 4, 10, dtype=torch.int64), torch.zeros(3, 2, 4, dtype=torch.bool)
    for row, pair in enumerate(DOCUMENTS):
        for side, sentences in enumerate(pair):
            for place, sentence in enumerate(sentences):
                numbers = vocabulary.numbers(sentence, most=10)
                inputs[row, side, place, : len(numbers)] = torch.from_numpy(numbers)
                mask[row, side, place] = True
    return {"inputs": inputs, "sentence_mask": mask, "labels": torch.tensor([1.0, 0.0, 1.0])}


def wider_documents(batch: Batch, *, value: int = 9) -> Batch:
    """Add two padding sentences, filled with `value`, and, for word ids, three padding words to each."""
    inputs, last = batch["inputs"], (0, 0) if batch["inputs"].is_floating_point() else (0, 3)
    wide = pad(inputs, (*last, 0, 2))
    wide[:, :, inputs.shape[2] :] = value  # sentences that are not present
    return batch | {"inputs": wide, "sentence_mask": pad(batch["sentence_mask"], (0, 2))}


# ---- tagged sentences

SIZE, OCCURRENCES_MOST = 6, 2
TAGS = tag_set(("PER",))


def split(name: str, *sentences: str) -> SplitDocument:
    """Make a document; each sentence is words and, after a bar, tags; `w8_w9` is one word with a space."""
    made = []
    for sentence in sentences:
        words, bar, tags = sentence.partition(" | ")
        parts = tuple(word.replace("_", " ") for word in words.split())
        made.append(TaggedSentence(words=parts, tags=tuple(tags.split()) if bar else None))
    document = TaggedDocument(id=name, sentences=tuple(made))
    return SplitDocument(document=document, origin=tuple(range(len(sentences))))


TAGGED = (
    split("novel", "w1 w2 w3 w4", "w2 strange | B-PER O", "w9 w9", "w3 w1 w3 | O B-PER I-PER"),
    split("paper", "w1 | B-PER", "w5 w6 w7 w8_w9 w5 | O O O B-PER O", "w1 w7"),
)
STATIC_FORM = {"size": SIZE, "tags": TAGS, "hidden_size": 4, "distance_size": 3}
STATIC_KINDS: dict[str, dict[str, Any]] = {
    "bilstm": STATIC_FORM,
    "sentence": STATIC_FORM | {"context_order": "sentence"},
    "linear": STATIC_FORM | {"context_encoder": "linear"},
    "baseline": STATIC_FORM | {"context": False},
}


def tag_examples(numbers: Sequence[int]) -> list[TagExample]:
    """Return examples of the labelled sentences of TAGGED. Some words have the greatest number of
    occurrences, some none, and one word has no label."""
    examples = TagExamples(TAGGED, TAGS, most=OCCURRENCES_MOST, target=False)
    chosen = [examples[number] for number in numbers]
    for number, example in zip(numbers, chosen, strict=True):
        if number == 1:
            example.labels[1] = -100
    return chosen


class DrawnVectors:
    """Replaces `WordEncodings`: a random vector for each word of a sentence, always the same one."""

    size = SIZE

    def rows(self, words: Sequence[str]) -> np.ndarray:
        return np.random.default_rng([*" ".join(words).encode()]).normal(size=(len(words), SIZE))


def static_tagger(kind: str, folder: Path | None = None) -> Loaded:
    if folder is not None:
        return load_static_tagger(folder), None
    tagger = new_static_tagger(StaticTaggerConfig(**STATIC_KINDS[kind]), seed=3)
    with torch.no_grad():  # so that attention is far from uniform
        for weight in tagger.parameters():
            weight.mul_(2)
    return tagger, None


def encoded_words(kind: str, numbers: Sequence[int] = range(4)) -> Batch:
    form = {"context": kind != "baseline", "whole_sentences": kind == "sentence"}
    return StaticCollate(DrawnVectors(), TAGGED, **form)(tag_examples(numbers))


def wider_words(batch: Batch) -> Batch:
    targets = batch["targets"].masked_fill(~batch["attention_mask"][..., None], 7.0)
    wide = batch | {
        "targets": pad(targets, (0, 0, 0, 2), value=9.0),
        "attention_mask": pad(batch["attention_mask"], (0, 2)),
        "labels": pad(batch["labels"], (0, 2), value=-100),
    }
    if "context_lengths" in batch:
        wide["context_lengths"] = pad(batch["context_lengths"], (0, 1), value=3)
    if "context" in batch:
        wide["context"] = pad(batch["context"], (0, 0, 0, 3), value=8.0)
        wide |= wider_occurrences(batch, batch["places"] >= 0, words=2)
    return wide


def wider_occurrences(batch: Batch, present: Tensor, *, words: int) -> Batch:
    """Add an absent occurrence for each word, and more words; buckets of absent ones get arbitrary values."""
    last = (0, 0) * (batch["places"].dim() - 3)
    places = pad(batch["places"], (*last, 0, 1, 0, words), value=-1)
    buckets = pad(batch["buckets"].masked_fill(~present, 5), (0, 1, 0, words), value=6)
    return {"places": places, "buckets": buckets}


DYNAMIC_HEADS = {
    "context": TaggerHead(tags=TAGS, hidden_size=4, distance_size=3),
    "context alone": TaggerHead(tags=TAGS, sequence_encoder="none", distance_size=3),
    "lstm": TaggerHead(tags=TAGS, context=False, hidden_size=4),
    "fine-tuned": TaggerHead(tags=TAGS, context=False, sequence_encoder="none"),
}


def tokens_of_words(head: TaggerHead, numbers: Sequence[int] = range(4)) -> Batch:
    tokenizer = word_tokenizer(pad=0)
    tokenizer.model_max_length = 12
    return DynamicCollate(tokenizer, TAGGED, context=head.context)(tag_examples(numbers))


def wider_tokens(batch: Batch) -> Batch:
    """Add padding, so that there are more words than a sequence has tokens."""
    ids = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, 30)
    wide = batch | {
        "input_ids": pad(ids, (0, 1), value=33),
        "attention_mask": pad(batch["attention_mask"], (0, 1)),
        "words": pad(batch["words"], (0, 1), value=-1),
        "word_mask": pad(batch["word_mask"], (0, 8)),
        "labels": pad(batch["labels"], (0, 8), value=-100),
    }
    if "places" in batch:
        wide |= wider_occurrences(batch, batch["places"][..., 0] >= 0, words=8)
    return wide


# ---- all of them


@dataclass(frozen=True)
class Case:
    """A model to test, a batch for it, and its properties."""

    # Makes the model on the encoder in a folder (None: it needs none), or loads a trained one from its
    # folder; takes the options of `load_encoder`.
    load: Callable[..., Loaded]
    batch: Callable[[PreTrainedTokenizerFast | None], Batch]
    row: Callable[[Batch, int], Batch]  # returns a single row without padding
    wider: Callable[[Batch], Batch]  # returns the batch with more padding, of other content
    rows: int
    items: int  # number of labels
    dropped: str  # a weight; loading a trained model without it is refused
    encoder: str = "tiny"  # the encoder's fixture; "" = the model has no encoder
    labels: tuple[str, ...] = ("labels",)
    without: str = ""  # pattern of the weights that get no gradient
    rate: float = 3e-3  # learning rate for overfitting one batch
    # For models whose config has the head: how one with any head is loaded, and another possible head.
    plain: Callable[..., Loaded] | None = None
    other: Any = None
    exact: bool = False  # True = tested in float64, where only the loss is rounded
    full_head: bool = False  # True = the head computes in its weights' precision, whatever the encoder's is


def learn(model: PreTrainedModel, batch: Batch, *, steps: int, rate: float, until: float = 0.0) -> Any:
    """Train on one batch until the loss is below `until`, or for `steps`; return the last output."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        output = model(**batch)
        optimiser.zero_grad()
        output.loss.backward()
        optimiser.step()
        if output.loss.item() < until:
            break
    return output


def assert_same_gradients(
    model: PreTrainedModel, other: PreTrainedModel, *, rtol: float, atol: float
) -> None:
    """Compare all gradients; a missing one in `model` may be missing or zero in `other`."""
    for (name, weight), twin in zip(model.named_parameters(), other.parameters(), strict=True):
        if weight.grad is None:
            assert twin.grad is None or not twin.grad.any(), name
        else:
            torch.testing.assert_close(weight.grad, twin.grad, rtol=rtol, atol=atol, msg=name)


def _fixed(load: Callable[..., Loaded], **form: Any) -> Callable[..., Loaded]:
    return lambda folder, **options: load(folder, **(form | options))


def _joint(load: Callable[..., Loaded], model_class: type, head: Any) -> Callable[..., Loaded]:
    """Return a loader of a joint model: trained, or on an encoder with token type embeddings that differ."""

    def made(folder: Path, **options: Any) -> Loaded:
        trained = is_trained(str(folder), model_class)
        loaded = load(folder, head=head, **options)
        return loaded if trained else own_token_types(loaded)

    return made


TINY = {"max_length": 64, "window": 8}
GLOBAL = r"_global\."
LOCAL_OF_LAST = r"layer\.1\.attention\.self\.(query|key|value)\."
CASES: dict[str, Case] = {
    name: Case(
        _fixed(load_language_model, **TINY), lambda _, globals_=globals_: masked(globals_=globals_), row_of,
        wider_masked, 4, 25, "lm_head.dense.weight", without="" if globals_ else GLOBAL, exact=True,
    )
    for name, globals_ in (("language model", True), ("language model without global tokens", False))
}  # fmt: skip
CASES |= {
    "pair scorer": Case(
        _fixed(load_pair_scorer, **TINY), lambda _: scored(), row_of, wider_texts, 4, 4, "scorer.2.weight",
        without=LOCAL_OF_LAST, full_head=True,
    ),
    "pair classifier": Case(
        _fixed(load_pair_classifier, **TINY), lambda _: classified(), row_of, wider_texts, 4, 4,
        "classifier.dense.weight", without=LOCAL_OF_LAST, full_head=True,
    ),
    "question answerer": Case(
        _fixed(load_question_answerer, **TINY), lambda _: questions(), lambda _, row: questions(row),
        wider_questions, 4, 4, "span_head.3.weight", labels=ANSWER_LABELS,
    ),
    "question answerer, paragraph types": Case(
        _fixed(load_question_answerer, paragraph_types=2, **TINY), lambda _: questions(),
        lambda _, row: questions(row), wider_questions, 4, 4, "span_head.3.weight", labels=ANSWER_LABELS,
    ),
    "fine-tuned matcher": Case(
        _fixed(load_finetuned_matcher, matcher=SHALLOW, max_tokens=MAX_TOKENS), sentences_of_documents,
        lambda batch, row: {name: values[row : row + 1] for name, values in batch.items()}, wider_documents,
        3, 3, "matcher.head.2.weight", "bert", without=GLOBAL, rate=5e-3,
    ),
}  # fmt: skip
CASES |= {
    f"joint {name}": Case(
        _joint(load_joint_model, JointModel, head),
        lambda words, kind=name[3]: sequences(words, labels=JOINT_LABELS[kind]),
        row_of, wider_sequences, 3, 4 if name[3] == "k" else 3,
        f"head.layers.{int(head.layers == 'tanh')}.bias", "bert", without=GLOBAL, full_head=True,
        plain=load_joint_model, other=JointHead(kind="ie_1", labels=5, **LAYOUT),
    )
    for name, head in JOINT_HEADS.items()
}  # fmt: skip
PAIRS_OF_CLAIM = ([0, 1, 2], [3], [4])
CASES |= {
    f"pooled {name}": Case(
        _fixed(load_pooled_pairs, head=head), claims,
        lambda batch, row: some_pairs(batch, PAIRS_OF_CLAIM[row], [row]), wider_sequences, 3, 3,
        "classifier.weight", "bert", without=GLOBAL, full_head=True, plain=load_pooled_pairs,
        other=PooledHead(pooling="max", labels=4, length=8),
    )
    for name, head in POOLED_HEADS.items()
}  # fmt: skip
CASES |= {
    f"paragraph {name}": Case(
        _fixed(load_paragraph_model, head=head), lambda words, head=head: paragraphs(words, head),
        row_of, wider_sequences, 3, 6, "lm_head.dense.weight", "bert", labels=("labels", "mlm_labels"),
        without=GLOBAL, rate=5e-3, plain=load_paragraph_model,
        other=JointHead(kind="ie_k", sentences=3, length=6),
    )
    for name, head in PARAGRAPH_HEADS.items()
}  # fmt: skip
CASES |= {
    f"matcher {encoder} {cda}": Case(
        lambda folder, encoder=encoder, cda=cda: (
            read_own_model(DocumentMatcher, str(folder)) if folder else matcher_of(encoder, cda), None
        ),
        lambda _, encoder=encoder: document_pairs(encoder),
        lambda batch, row: {name: values[row : row + 1] for name, values in batch.items()},
        # ids other than 0 count as words, so padding must be 0 for word ids
        lambda batch, encoder=encoder: wider_documents(batch, value=0 if encoder == "gru" else 9),
        4, 4, "head.2.weight", "", rate=2e-2,
    )
    for encoder, cda in MATCHERS
}  # fmt: skip
CASES |= {
    f"static tagger {kind}": Case(
        lambda folder, kind=kind: static_tagger(kind, folder), lambda _, kind=kind: encoded_words(kind),
        lambda _, row, kind=kind: encoded_words(kind, [row]), wider_words, 4, 10, "classifier.weight", "",
        rate=2e-2,
    )
    for kind in STATIC_KINDS
}  # fmt: skip
CASES |= {
    f"dynamic tagger {name}": Case(
        _fixed(load_dynamic_tagger, head=head, max_length=12, window=12),
        lambda _, head=head: tokens_of_words(head),
        lambda _, row, head=head: tokens_of_words(head, [row]), wider_tokens, 4, 10,
        "head.classifier.bias", "bert", without=GLOBAL, rate=1e-2,
        plain=_fixed(load_dynamic_tagger, max_length=12, window=12),
        other=TaggerHead(tags=TAGS, hidden_size=5),
    )
    for name, head in DYNAMIC_HEADS.items()
}  # fmt: skip


def of_cases(*starts: str) -> pytest.MarkDecorator:
    """Select the cases whose names start so, for a test that uses the fixtures `loaded`, `model`, `batch`."""
    return pytest.mark.parametrize("case", [name for name in CASES if name.startswith(starts)], indirect=True)
