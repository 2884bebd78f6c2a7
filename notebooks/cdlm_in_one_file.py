"""CDLM's pretraining (Caciularu et al. 2021, "CDLM: Cross-Document Language Modeling") in one file, to be
read from top to bottom beside the paper.

    python notebooks/cdlm_in_one_file.py            # invented reports, a small model, under two minutes
    python notebooks/cdlm_in_one_file.py FOLDER     # your own: a folder for each event, a text file a report

The idea is in sections 2.1 and 2.2 of the paper. Reports of one event say the same things. A language model
that reads them together can find a hidden word in the other report, if the hidden word may look that far. So
(1) the documents of a sequence are related, and (2) hidden words attend to the whole sequence, while all
other words attend to a window of neighbours, which keeps long sequences cheap. The file trains a small base
with local attention, in the place of Longformer, and from it two models on the same sequences: CDLM, and
Local CDLM, whose hidden words see their window only (section 3). It prints the perplexity of both on held-out
events: the exponential of the mean loss of the hidden words (section 3.1).

It needs torch and transformers (with tokenizers, which comes with it). The attention is a mask over a full
matrix here, so memory grows with the square of the length; `cdlm_lab` computes the same function sparsely.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import LongformerConfig, LongformerForMaskedLM

Documents = list[str]  # the texts of one event
PAD, CLS, SEP, MASK, UNKNOWN, DOC_START, DOC_END = range(7)
SPECIAL = ["<pad>", "<s>", "</s>", "<mask>", "<unk>", "<doc-s>", "</doc-s>"]
SIZE = 64  # of the states of the model
NOT_HIDDEN = -100  # the label that PyTorch's cross entropy ignores


# ---- Related documents (section 2.2). The paper takes Multi-News: several news articles an event.


def read_events(folder: Path) -> list[Documents]:
    """The texts of each folder in `folder`, of those that have at least two."""
    events = [
        [file.read_text(encoding="utf-8") for file in sorted(event.glob("*.txt"))]
        for event in sorted(folder.iterdir())
        if event.is_dir()
    ]
    related = [texts for texts in events if len(texts) > 1]
    if len(related) < 10:
        raise SystemExit(f"{folder}: {len(related)} folders with at least two .txt files; 10 are needed")
    return related


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


PLACES = words(
    "Adder Ashby Barrow Belden Carrow Cobham Dalton Dunmore Eastry Elmley Farley Fenwick Garston Glenby "
    "Harwell Ilford Ivybridge Kelso Kirton Langley Lydden Malton Morley Netley Norwood Oakham Otley Penrith"
)
PEOPLE = words(
    "Abbot Archer Baker Barnes Carter Cooper Dixon Draper Ellis Everett Fisher Foster Gardner Grant Harper "
    "Hunter Ingram Irving Jarvis Joyner Keller Knight Lambert Lawson Mason Mercer Nash Norris Osborn Owens "
    "Palmer Potter Quigley Quinn Ramsey Reeves Sawyer Spencer Tanner Turner Underwood Usher Vance Vaughn"
)
THINGS = words("bridge school market station library chapel theatre harbour museum mill hotel factory")
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
EVENTS = {"fire": "burned", "flood": "was flooded", "storm": "lost its roof", "blast": "was damaged"}
SENTENCES = [  # what a report may say, each in two wordings
    ("A {event} struck {place} on {day} .", "On {day} there was a {event} in {place} ."),
    ("The {thing} {happened} .", "People saw how the {thing} {happened} ."),
    ("Mayor {mayor} visited the town .", "The town was visited by mayor {mayor} ."),
    ("Police chief {chief} counted {hurt} hurt .", "{hurt} were hurt , said police chief {chief} ."),
    ("The damage was put at {cost} million .", "It will cost {cost} million to repair ."),
    ("A witness named {witness} called for help .", "Help was called by a witness named {witness} ."),
]


def invented_events(count: int, *, seed: int) -> list[Documents]:
    """Two reports of each of `count` events, from templates; each leaves out a third of what happened. The
    names of mayors, chiefs and witnesses differ, so that a small model learns soon what to look for."""
    draw, events = random.Random(seed), []
    for _ in range(count):
        event = draw.choice(list(EVENTS))
        mayor, chief, witness = (draw.choice(PEOPLE[first::3]) for first in range(3))
        hurt, cost = str(draw.randrange(10, 50)), str(draw.randrange(50, 100))
        facts = {
            "event": event,
            "happened": EVENTS[event],
            "mayor": mayor,
            "chief": chief,
            "witness": witness,
        }
        facts |= {"hurt": hurt, "cost": cost, "place": draw.choice(PLACES), "day": draw.choice(DAYS)}
        facts |= {"thing": draw.choice(THINGS)}
        reports = [draw.sample(SENTENCES, 4) for _ in range(2)]
        events.append([" ".join(draw.choice(one).format(**facts) for one in report) for report in reports])
    return events


def word_tokenizer(texts: Sequence[str], *, most: int) -> Tokenizer:
    """Pieces of words learned from the training texts (WordPiece). The paper takes Longformer's BPE."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL[UNKNOWN]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=most, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer=trainer)
    return tokenizer


# ---- One sequence (section 2.2): "we simply concatenate related documents using new special document
# separator tokens, <doc-s> and </doc-s>". Paper: 4,096 tokens.


def pack(documents: Sequence[Sequence[int]], *, longest: int) -> Tensor:
    """`<s> <doc-s> a b </doc-s> <doc-s> c </doc-s> </s>`, int64 (seq,). Each document keeps its beginning, of
    an equal share of the room."""
    room = (longest - 2) // len(documents) - 2
    ids = [CLS]
    for document in documents:
        ids += [DOC_START, *document[:room], DOC_END]
    return torch.tensor([*ids, SEP])


# ---- Hidden words (section 2.2): "For each training example, we randomly choose a sample of tokens (15%) to
# be masked", as in BERT: 80% of them become the mask token, 10% any other token, 10% stay, and all are to be
# predicted (Devlin et al. 2019, appendix A.1).


def hide(ids: Tensor, *, vocabulary: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """What the model reads, and what it is to predict (-100 = nothing), both int64 (seq,)."""
    hidden = (torch.rand(len(ids), generator=generator) < 0.15) & (ids >= len(SPECIAL))
    fate = torch.rand(len(ids), generator=generator)
    others = torch.randint(len(SPECIAL), vocabulary, (len(ids),), generator=generator)
    read = torch.where(hidden & (fate < 0.8), MASK, ids)
    read = torch.where(hidden & (fate >= 0.8) & (fate < 0.9), others, read)
    return read, torch.where(hidden, ids, NOT_HIDDEN)


def batch_of(sequences: Sequence[tuple[Tensor, Tensor]], *, hidden_are_global: bool) -> dict[str, Tensor]:
    """Padded sequences (batch, seq). CDLM: "our pretraining strategy tries to predict each masked token while
    considering the full document set, by assigning them global attention" (section 2.2); Local CDLM has no
    global token (section 3)."""
    read, labels = zip(*sequences, strict=True)
    ids = nn.utils.rnn.pad_sequence(read, batch_first=True, padding_value=PAD)
    hidden = nn.utils.rnn.pad_sequence(labels, batch_first=True, padding_value=NOT_HIDDEN)
    is_global = (hidden != NOT_HIDDEN) & hidden_are_global
    batch = {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": hidden}
    return batch | {"global_attention_mask": is_global.long()}


# ---- Attention (section 2.1; Beltagy et al. 2020, "Longformer", section 3.1). "Separate weights are used for
# global and local attention."


class LocalGlobalAttention(nn.Module):
    """Longformer's self-attention as a mask, with the six projections of one of its layers.

    A local token sees the tokens within half a window and all global tokens, with the local projections. A
    global token sees every token, with the global ones. With window 4 and token 6 global, o = sees:

              0 1 2 3 4 5 6 7        the window of 2 is 0 to 4
        2     o o o o o . o .
        6     o o o o o o o o
    """

    def __init__(self, layer: nn.Module, *, window: int, heads: int) -> None:
        super().__init__()
        self.window, self.heads = window, heads
        for name in ("query", "key", "value", "query_global", "key_global", "value_global"):
            setattr(self, name, getattr(layer, name))

    def forward(self, states: Tensor, attention_mask: Tensor, *_: object, **__: object) -> tuple[Tensor]:
        """`states` (batch, seq, size) -> the same shape; `attention_mask` (batch, seq) as transformers hands
        it to each layer: negative = padding, 0 = local, positive = global."""
        is_text, is_global = attention_mask >= 0, attention_mask > 0
        place = torch.arange(states.shape[1], device=states.device)
        near = (place[:, None] - place[None, :]).abs() <= self.window // 2
        sees = (near | is_global[:, None, :]) & is_text[:, None, :]
        output = self._attend(states, (self.query, self.key, self.value), sees)
        if is_global.any():
            projections = (self.query_global, self.key_global, self.value_global)
            of_globals = self._attend(states, projections, is_text[:, None, :].expand_as(sees))
            output = torch.where(is_global[..., None], of_globals, output)
        return (output * is_text[..., None],)

    def _attend(self, states: Tensor, projections: Sequence[nn.Module], sees: Tensor) -> Tensor:
        """softmax(q k / sqrt(size)) v over the tokens that are seen, (batch, seq, size)."""
        q, k, v = (one(states).unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in projections)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~sees[:, None], torch.finfo(scores.dtype).min).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)


def with_masks(model: LongformerForMaskedLM) -> LongformerForMaskedLM:
    """Put the attention above into each layer of a Longformer, with its own weights."""
    config = model.config
    for layer, window in zip(model.longformer.encoder.layer, config.attention_window, strict=True):
        heads = config.num_attention_heads
        layer.attention.self = LocalGlobalAttention(layer.attention.self, window=window, heads=heads)
    return model


def small_longformer(vocabulary: int, *, longest: int, window: int) -> LongformerForMaskedLM:
    """A Longformer that learns in a minute. The paper goes on from Longformer-base, which has read for days.

    Two starting values take the place of much reading: positions are sinusoids (Vaswani et al. 2017), so that
    neighbours are known from the beginning, and keys are like queries, so that a word first looks at words
    like it.
    """
    config = LongformerConfig(
        vocab_size=vocabulary,
        hidden_size=SIZE,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * SIZE,
        attention_window=[window] * 2,
        max_position_embeddings=longest + 1 + window + PAD,
        type_vocab_size=1,
        initializer_range=0.05,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )
    model = LongformerForMaskedLM(config)
    with torch.no_grad():
        positions = model.longformer.embeddings.position_embeddings.weight
        wavelength = torch.exp(torch.arange(0, SIZE, 2) * (math.log(10_000) / SIZE))
        angle = torch.arange(len(positions))[:, None] / wavelength
        positions.copy_(torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1) * 0.15)
        for layer in model.longformer.encoder.layer:
            layer.attention.self.key.weight.copy_(layer.attention.self.query.weight)
            layer.attention.self.query.weight.mul_(4)
    return model


def copy_local_to_global(model: LongformerForMaskedLM) -> None:
    """Section 2.1: global weights "are initialized to the local attention values"."""
    for layer in model.longformer.encoder.layer:
        for name in ("query", "key", "value"):
            local = getattr(layer.attention.self, name).state_dict()
            getattr(layer.attention.self, f"{name}_global").load_state_dict(local)


# ---- Loss, training loop, perplexity.


def loss_of(model: LongformerForMaskedLM, batch: dict[str, Tensor]) -> Tensor:
    """The mean cross entropy of the hidden words of a batch, in nats. Only they are predicted."""
    read = {name: one for name, one in batch.items() if name != "labels"}
    hidden = batch["labels"] != NOT_HIDDEN
    logits = model.lm_head(model.longformer(**read).last_hidden_state[hidden])  # (hidden words, vocabulary)
    return cross_entropy(logits.float(), batch["labels"][hidden])


def train(
    model: LongformerForMaskedLM,
    sequences: Sequence[Tensor],
    *,
    hidden_are_global: bool,
    steps: int,
    rate: float,
    batch_size: int = 16,
) -> None:
    """AdamW, the learning rate rises for a tenth of the steps and then falls linearly (appendix A.1). New
    words are hidden each time that a sequence is read."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (steps / 10), (steps - step) / (steps * 0.9))
    )
    generator, draw, began = torch.Generator().manual_seed(0), random.Random(0), time.monotonic()
    model.train()
    for step in range(1, steps + 1):
        chosen = [sequences[draw.randrange(len(sequences))] for _ in range(batch_size)]
        hidden = [hide(ids, vocabulary=model.config.vocab_size, generator=generator) for ids in chosen]
        loss = loss_of(model, batch_of(hidden, hidden_are_global=hidden_are_global))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % max(1, steps // 5) == 0:
            left = (time.monotonic() - began) / step * (steps - step)
            print(f"  step {step:,} of {steps:,}, loss {loss.item():.2f}, {left:.0f} s left", flush=True)


@torch.no_grad()
def perplexity(
    model: LongformerForMaskedLM, sequences: Sequence[Tensor], *, hidden_are_global: bool
) -> float:
    """The exponential of the mean loss of the hidden words, with the attention of training (section 3.1). The
    same words are hidden for every model."""
    model.eval()
    generator, loss, words = torch.Generator().manual_seed(1), 0.0, 0
    for start in range(0, len(sequences), 16):
        some = sequences[start : start + 16]
        hidden = [hide(ids, vocabulary=model.config.vocab_size, generator=generator) for ids in some]
        batch = batch_of(hidden, hidden_are_global=hidden_are_global)
        count = int((batch["labels"] != NOT_HIDDEN).sum())
        loss, words = loss + loss_of(model, batch).item() * count, words + count
    return math.exp(loss / words)


def main() -> None:
    """Train the base, then both models from it, and print their perplexities."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="a folder for each event, a text file a report")
    parser.add_argument("--longest", type=int, default=128, help="tokens of a sequence (paper: 4096)")
    parser.add_argument("--window", type=int, default=8, help="of local attention (paper: 512)")
    parser.add_argument("--base", type=int, default=200, help="steps of the base (paper: Longformer-base)")
    parser.add_argument("--steps", type=int, default=600, help="of each model (paper: 25,000)")
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    given = parser.parse_args()
    torch.manual_seed(0)
    events = read_events(given.folder) if given.folder else invented_events(6000, seed=0)
    random.Random(0).shuffle(events)
    held_out, known = events[: len(events) // 10], events[len(events) // 10 :]
    tokenizer = word_tokenizer([text for event in known for text in event], most=4000)
    packed = [
        [pack([one.ids for one in tokenizer.encode_batch(event)], longest=given.longest) for event in part]
        for part in (known, held_out)
    ]
    vocabulary = tokenizer.get_vocab_size()
    print(f"{len(known):,} events to learn from, {len(held_out):,} held out, {vocabulary:,} kinds of tokens")
    base = with_masks(small_longformer(vocabulary, longest=given.longest, window=given.window))
    print("the base:")
    train(base, packed[0], hidden_are_global=False, steps=given.base, rate=given.rate)
    copy_local_to_global(base)
    results = {}
    for name, hidden_are_global in (("Local CDLM", False), ("CDLM", True)):
        print(f"{name}:")
        model = deepcopy(base)
        form = {"hidden_are_global": hidden_are_global}
        train(model, packed[0], steps=given.steps, rate=given.rate, **form)
        results[name] = perplexity(model, packed[1], **form)
    print("\nperplexity of hidden words in held-out events (lower is better)")
    for name, value in results.items():
        print(f"  {name:<11} {value:8.2f}")


if __name__ == "__main__":
    main()
