"""Vectors of sentences and of words from a frozen encoder, each computed once and kept on disk.

A sentence is encoded by itself, between `[CLS]` and `[SEP]`; every token attends to every other and no token
is global, so a converted BERT computes what BERT does. The vector of a sentence is the mean of its tokens'
last states (Zhou et al. 2020, "CDA", section 5.1), that of a word the concatenated states of the last layers,
averaged over its subword tokens (Joerke et al. 2020, "Doc-ARC", sections 2.2 and 4.1).

They are stored under the hash of their text in an SQLite file, in a folder named by the fingerprint of the
encoder. A killed run loses its last piece at most, and several processes may share a folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from threading import RLock, local
from typing import Any, Generic, TypeVar, Unpack

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag
from torch.nn.utils.rnn import pad_sequence
from transformers import LongformerModel, PretrainedConfig, PreTrainedTokenizerFast

from cdlm_lab.data.files import DataError
from cdlm_lab.encoders.checkpoint import CheckpointError, default_device
from cdlm_lab.encoders.encoder import EncoderOptions, load_encoder
from cdlm_lab.encoders.precision import Precision, computing_in, resolve_precision
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.examples.tokens import tokenise, tokenise_words
from cdlm_lab.progress import Progress

BATCH_SIZE = 64  # sentences per forward pass; larger batches are no faster
ENDS = 2  # [CLS] and [SEP]


class _FrozenEncoder:
    """An encoder that is used for inference only."""

    def __init__(
        self,
        model: LongformerModel,  # in eval mode, on its device; its weights must not change any more
        tokenizer: PreTrainedTokenizerFast,
        *,
        max_tokens: int,  # maximum of a sentence, `[CLS]` and `[SEP]` included
        precision: Precision = "float32",  # of the forward pass; vectors are float32 in any case
    ) -> None:
        self.model, self.tokenizer, self.max_tokens = model, tokenizer, max_tokens
        self.size: int = model.config.hidden_size  # of a vector
        self.precision = resolve_precision(precision, device=model.device.type)

    def padded(self, sentences: Iterable[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Token ids with `[CLS]` and `[SEP]` added, and the attention mask, padded, on the model's device."""
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        rows = [torch.tensor([begin, *tokens, end]) for tokens in sentences]
        ids = pad_sequence(rows, batch_first=True, padding_value=self.tokenizer.pad_token_id)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return ids.to(self.model.device), mask.to(self.model.device)

    @cached_property
    def sample(self) -> list[float]:
        """A few numbers by which the weights are recognised, nearly the same on any machine and in any
        precision: of the mean last state over fixed tokens."""
        middle = self.model.config.vocab_size // 2
        with torch.inference_mode():
            states = mean_states(self.model, *self.padded([range(middle, middle + 8)]))
        return [round(one, 3) for one in states[0, :8].tolist()]

    def recognise(self, config: PretrainedConfig, *, trained: str | os.PathLike[str] | None) -> None:
        """Note this encoder in the config of a new model that reads its vectors, or compare it with the one
        noted in that of a trained one. Raises CheckpointError if it is another."""
        if not trained:
            config.encoder_sample = self.sample
        elif not np.allclose(getattr(config, "encoder_sample", self.sample), self.sample, atol=0.05):
            why = "it reads the vectors of another encoder than this, or of earlier weights of it"
            raise CheckpointError(f"{trained}: {why}; name that encoder, or train anew")


class SentenceEncoder(_FrozenEncoder):
    """A frozen encoder whose vector of a sentence is the mean of its tokens' last hidden states."""

    @cached_property
    def fingerprint(self) -> str:
        """A hash of 16 hexadecimal digits over everything that determines the vectors: weights, tokenizer,
        `max_tokens`, window, precision."""
        digest = hashlib.sha256(self.tokenizer.backend_tokenizer.to_str().encode())
        if self.precision != "float32":
            digest.update(self.precision.encode())
        digest.update(f"{self.max_tokens} {self.model.config.attention_window}".encode())
        for name, weight in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().cpu().contiguous().numpy())
        return digest.hexdigest()[:16]

    def encode(self, sentences: Sequence[str], *, batch_size: int = BATCH_SIZE) -> np.ndarray:
        """The vectors of sentences: (sentences, size), float32."""
        if not sentences:
            return np.zeros((0, self.size), dtype=np.float32)
        words = tokenise(sentences, self.tokenizer)["input_ids"]
        batch = self.padded([tokens[: self.max_tokens - ENDS] for tokens in words])
        with torch.inference_mode(), computing_in(self.precision, self.model.device):
            vectors = sentence_vectors(self.model, *batch, batch_size=batch_size)
        return vectors.float().cpu().numpy()


def mean_states(model: LongformerModel, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """The mean of each sentence's last hidden states over its tokens, (sentences, size), with `[CLS]` and
    `[SEP]`, as in sentence-transformers. Arguments: (sentences, tokens); each sentence must have a token."""
    states = model(input_ids, attention_mask).last_hidden_state
    is_token = attention_mask[..., None].to(states.dtype)
    return (states * is_token).sum(1) / is_token.sum(1)


def sentence_vectors(
    model: LongformerModel, input_ids: Tensor, attention_mask: Tensor, *, batch_size: int = BATCH_SIZE
) -> Tensor:
    """`mean_states` in batches of similar length, to save padding, which must be at the end of rows."""
    lengths = attention_mask.sum(1).tolist()
    batches = batches_by_length(lengths, [0] * len(lengths), batch_size)
    parts = []
    for rows in batches:
        width = lengths[rows[0]]  # the longest comes first
        parts.append(mean_states(model, input_ids[rows, :width], attention_mask[rows, :width]))
    order = torch.tensor([row for rows in batches for row in rows], device=input_ids.device)
    return torch.cat(parts)[order.argsort()]


def load_sentence_encoder(
    name_or_path: str | os.PathLike[str],
    *,
    max_tokens: int,
    window: int | None = None,
    precision: Precision = "float32",
    **options: Unpack[EncoderOptions],
) -> SentenceEncoder:
    """Any encoder as a sentence encoder, on the default device."""
    model, tokenizer = load_encoder(
        name_or_path, **lengths_of(max_tokens=max_tokens, window=window), **options
    )
    return SentenceEncoder(model.to(default_device()), tokenizer, max_tokens=max_tokens, precision=precision)


def lengths_of(*, max_tokens: int, window: int | None) -> dict[str, int]:
    """The arguments `max_length` and `window` of `load_encoder` for sentences that are truncated to
    `max_tokens`, `[CLS]` and `[SEP]` included; ValueError where that leaves no token.

    `window`: total width of attention; None = twice `max_tokens`, so that every token attends to every other.
    A Longformer with fewer positions than that needs a narrower window.
    """
    if max_tokens <= ENDS:
        raise ValueError(f"max_tokens is {max_tokens}; [CLS] and [SEP] count, so take {ENDS + 1} or more")
    width = 2 * max_tokens if window is None else window
    return {"max_length": max(max_tokens, width), "window": width}


# ---- words

LAYERS = 4
SHOWN = 60  # characters of a sentence that a message quotes


class WordEncoder(_FrozenEncoder):
    """A frozen encoder of the words of sentences; vectors concatenate the states of the last `layers`."""

    def __init__(
        self,
        model: LongformerModel,
        tokenizer: PreTrainedTokenizerFast,
        *,
        layers: int = LAYERS,
        max_tokens: int,
        precision: Precision = "float32",
    ) -> None:
        most = model.config.num_hidden_layers
        if not 1 <= layers <= most:
            raise ValueError(f"layers is {layers}; the encoder has {most}, so take 1 to {most}")
        super().__init__(model, tokenizer, max_tokens=max_tokens, precision=precision)
        self.layers, self.size = layers, self.size * layers

    @cached_property
    def fingerprint(self) -> str:
        """A hash of 16 hexadecimal digits over everything that determines the vectors: weights, tokenizer,
        layers, `max_tokens`, window, precision."""
        sentences = SentenceEncoder(self.model, self.tokenizer, max_tokens=self.max_tokens).fingerprint
        computed = "" if self.precision == "float32" else f" torch.{self.precision}"
        return hashlib.sha256(f"words {self.layers} {sentences}{computed}".encode()).hexdigest()[:16]

    def encode(self, sentences: Sequence[Sequence[str]], *, batch_size: int = BATCH_SIZE) -> list[np.ndarray]:
        """The vectors of the words of each sentence: (words, size), float32. Raises ValueError for a sentence
        with more subword tokens than `max_tokens` has room for."""
        room = self.max_tokens - ENDS
        split = [word_pieces(self.tokenizer, words, most=room) for words in sentences]
        lengths = [len(ids) for ids, _ in split]
        for words, length in zip(sentences, lengths, strict=True):
            if length > room:
                what = f"the sentence {' '.join(words)[:SHOWN]!r} has {length} pieces"
                raise ValueError(f"{what}, but there is room for {room}; split it, or raise max_tokens")
        batches = batches_by_length(lengths, [0] * len(lengths), batch_size)
        with torch.inference_mode(), computing_in(self.precision, self.model.device):
            vectors = [rows for batch in batches for rows in self._encode([split[n] for n in batch])]
        return [vectors[place] for place in np.concatenate([*batches, []]).argsort()]

    def _encode(self, batch: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        ids, mask = self.padded(ids.tolist() for ids, _ in batch)
        output = self.model(ids, mask, output_hidden_states=True)
        pieces = [np.bincount(numbers) for _, numbers in batch]  # of each word
        places = np.concatenate(
            [1 + row * ids.shape[1] + np.arange(len(numbers)) for row, (_, numbers) in enumerate(batch)]
        )
        stops = np.concatenate(pieces).cumsum()
        starts = stops - np.concatenate(pieces)  # of the run of each word's pieces in `places`
        chosen, starts = (torch.from_numpy(numbers).to(ids.device) for numbers in (places, starts))
        means = [
            embedding_bag(chosen, states.float().flatten(0, 1), starts, mode="mean")
            for states in output.hidden_states[-self.layers :]
        ]
        vectors = torch.cat(means, dim=-1).cpu().numpy()
        return np.split(vectors, np.cumsum([len(words) for words in pieces])[:-1])


def word_pieces(
    tokenizer: PreTrainedTokenizerFast, words: Sequence[str], *, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ids of the subword tokens of a sentence, int64 (pieces,), and for each the number of its word,
    ascending; every word has at least one.

    Every word is tokenised as if a space stood before it. A word without any subword token, such as a lone
    control character, becomes the unknown token; ValueError if the tokenizer has none. `most`: at most so
    many of each word are returned; None = all.
    """
    if not words:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    ids, numbers = tokenise_words(words, tokenizer)
    if most is not None and len(ids) > most:
        nth = np.arange(len(ids)) - np.searchsorted(numbers, numbers)  # position of each piece in its word
        ids, numbers = ids[nth < most], numbers[nth < most]
    silent = np.setdiff1d(np.arange(len(words)), numbers)
    if not len(silent):
        return ids, numbers
    if tokenizer.unk_token_id is None:
        what = f"the word {words[silent[0]]!r} has no piece"
        raise ValueError(f"{what} and the tokenizer no unknown one; leave it out")
    places = np.searchsorted(numbers, silent)
    return np.insert(ids, places, tokenizer.unk_token_id), np.insert(numbers, places, silent)


class PieceCounts:
    """Numbers of subword tokens of words, each of which is tokenised only once."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer, self._known = tokenizer, {}

    def __call__(self, words: Sequence[str]) -> list[int]:
        """The number of each word of a sentence, 1 or more; it is read with two special tokens besides."""
        if new := [word for word in dict.fromkeys(words) if word not in self._known]:
            counts = np.bincount(word_pieces(self._tokenizer, new)[1])
            self._known |= zip(new, counts.tolist(), strict=True)
        return [self._known[word] for word in words]


def load_word_encoder(
    name_or_path: str | os.PathLike[str],
    *,
    layers: int = LAYERS,
    max_tokens: int,
    window: int | None = None,
    precision: Precision = "float32",
    **options: Unpack[EncoderOptions],
) -> WordEncoder:
    """Any encoder as an encoder of words, on the default device."""
    lengths = lengths_of(max_tokens=max_tokens, window=window)
    model, tokenizer = load_encoder(name_or_path, **lengths, **options)
    model = model.to(default_device())
    return WordEncoder(model, tokenizer, layers=layers, max_tokens=max_tokens, precision=precision)


# ---- rows on disk

STORE = "encodings.sqlite"
KEY_BYTES = 16
_TABLE = "CREATE TABLE IF NOT EXISTS encodings (key BLOB PRIMARY KEY, numbers BLOB NOT NULL)"
_PAGE = 1 << 16  # bytes that are read at once: the vectors of a sentence's words
_PATIENCE = 600  # seconds to wait while another process writes

Item = TypeVar("Item")
AnyEncoder = TypeVar("AnyEncoder", SentenceEncoder, WordEncoder)


class EncodingStore:
    """Key -> rows of `size` numbers, in an SQLite file in `folder`, which is created if missing. `half`: rows
    are stored as float16, rounded to 11 binary digits, else as float32. Raises DataError when the file is
    damaged."""

    def __init__(self, folder: str | os.PathLike[str], *, size: int, half: bool = False) -> None:
        self.folder, self.size, self._half = Path(folder), size, half
        self._number = np.dtype("<f2" if half else "<f4")
        self._here, self._one_thread = (
            local(),
            RLock(),
        )  # a connection a thread; one thread fills it at a time
        self.folder.mkdir(parents=True, exist_ok=True)
        self._run(_TABLE)

    def __reduce__(self) -> tuple[Any, ...]:
        """To be pickled without its rows: the copy opens the same folder."""
        return partial(EncodingStore, size=self.size, half=self._half), (self.folder,)

    def __len__(self) -> int:
        """The number of keys that are stored."""
        return self._run("SELECT COUNT(*) FROM encodings")[0][0]

    def __contains__(self, key: bytes) -> bool:
        return bool(self._run("SELECT 1 FROM encodings WHERE key = ?", (key,)))

    def rows(self, key: bytes) -> np.ndarray | None:
        """The rows of a key, (rows, size), float32 or float16, read-only; None if it is not stored."""
        found = self._run("SELECT numbers FROM encodings WHERE key = ?", (key,))
        return np.frombuffer(found[0][0], dtype=self._number).reshape(-1, self.size) if found else None

    def fill(
        self,
        wanted: Mapping[bytes, Item],
        encode: Callable[[list[Item]], Sequence[np.ndarray]],
        *,
        piece: int,
        name: str,
    ) -> None:
        """Compute and store what is missing of `wanted` (key -> item), with a progress bar called `name`.
        `encode` gives the rows of each item, (size,) or (rows, size); `piece` items are computed before they
        are written. Raises ValueError for a number too large for half precision."""
        missing = [key for key in wanted if key not in self]
        if not missing:
            return
        with self._one_thread, Progress(total=len(missing), desc=name, unit=" sentences") as bar:
            for start in range(0, len(missing), piece):
                part = missing[start : start + piece]
                if keys := [key for key in part if key not in self]:  # another process may have added some
                    found = encode([wanted[key] for key in keys])
                    content = [self._stored(rows) for rows in found]
                    self._write(list(zip(keys, content, strict=True)))
                bar.update(len(part))

    def _stored(self, rows: np.ndarray) -> bytes:
        with np.errstate(over="ignore"):
            stored = rows.astype(self._number)
        if self._half and not np.isfinite(stored).all():
            what = f"an encoding has the number {np.abs(rows).max():.6g}, which half precision cannot hold"
            raise ValueError(f"{what}; keep it with half=False")
        return stored.tobytes()

    def _write(self, content: Sequence[tuple[bytes, bytes]]) -> None:
        """Store rows by key, all or none of them. A key that another process has stored meanwhile stays."""
        with self._faults_named(), self._database() as base:
            base.executemany("INSERT OR IGNORE INTO encodings VALUES (?, ?)", content)

    def _run(self, command: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._faults_named():
            return self._database().execute(command, values).fetchall()

    def _database(self) -> sqlite3.Connection:
        """The connection of this thread; a forked process makes its own."""
        bases = self._here.__dict__
        if (process := str(os.getpid())) not in bases:
            bases[process] = sqlite3.connect(self.folder / STORE, timeout=_PATIENCE)
            bases[process].execute(f"PRAGMA page_size = {_PAGE}")
        return bases[process]

    @contextmanager
    def _faults_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            remedy = f"check the disk, or delete the folder {self.folder}, it will be computed anew"
            raise DataError(self.folder / STORE, f"it cannot be used ({error})", remedy) from error


def key_of(text: str) -> bytes:
    """The key of a text: its 16-byte BLAKE2b hash."""
    return blake2b(text.encode(), digest_size=KEY_BYTES).digest()


PIECE, SENTENCE_PIECE = 256, 512  # sentences computed between two writes: word vectors, sentence vectors
BETWEEN_WORDS = "\n"


class _Encodings(Generic[AnyEncoder]):
    """The stored vectors of one encoder in a folder, which is created if missing."""

    def __init__(self, encoder: AnyEncoder, folder: Path, **form: bool) -> None:
        self.encoder, self.folder, self.size = encoder, folder, encoder.size
        self._store = EncodingStore(folder, size=encoder.size, **form)

    def __len__(self) -> int:
        """The number of sentences that are stored."""
        return len(self._store)


class WordEncodings(_Encodings[WordEncoder]):
    """Vectors of the words of sentences, stored in `<folder>/<fingerprint of the encoder>_half/`, or without
    `_half` in float32. Raises DataError when the files are inconsistent or do not fit the encoder."""

    def __init__(self, encoder: WordEncoder, folder: str | os.PathLike[str], *, half: bool = True) -> None:
        self._half = half
        below = Path(folder) / f"{encoder.fingerprint}{'_half' if half else ''}"
        super().__init__(encoder, below, half=half)

    def ensure(self, sentences: Iterable[Sequence[str]], *, name: str = "encoding") -> None:
        """Compute the vectors that are missing, with a progress bar called `name`. Raises ValueError for a
        sentence too long for the encoder, a word with a line feed, or a number too large for half
        precision."""
        wanted = {_key(words): words for words in sentences if words}
        self._store.fill(wanted, self.encoder.encode, piece=PIECE, name=name)

    def rows(self, sentence: Sequence[str]) -> np.ndarray:
        """The vectors of the words of a sentence, (words, size), float16 or float32, read-only; computed
        first if missing (for many sentences `ensure` is faster)."""
        if not sentence:
            return np.zeros((0, self.size), dtype=np.float16 if self._half else np.float32)
        if (found := self._store.rows(key := _key(sentence))) is None:
            self.ensure([sentence])
            found = self._store.rows(key)
        return found


class _Passing(Generic[AnyEncoder]):
    """Vectors of the sentences that a thread has ensured last, in memory; each thread has its own."""

    def __init__(self, encoder: AnyEncoder) -> None:
        self.encoder, self.size, self._here = encoder, encoder.size, local()

    @property
    def _rows(self) -> dict[Any, np.ndarray]:
        return self._here.__dict__.setdefault("rows", {})

    def __getstate__(self) -> dict[str, Any]:
        return {"encoder": self.encoder, "size": self.size, "rows": self._rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.encoder, self.size, self._here = state["encoder"], state["size"], local()
        self._here.rows = state["rows"]


class PassingWords(_Passing[WordEncoder]):
    """Like `WordEncodings`, but keeps in memory only the sentences of the last `ensure` of the same thread:
    for streams of text that nothing reads twice."""

    def ensure(self, sentences: Iterable[Sequence[str]], *, name: str = "encoding") -> None:
        """Compute the vectors, in parts with a progress bar called `name`, and forget all others. Known
        sentences are computed again: in a batch with other sentences the last digits differ."""
        wanted = list(dict.fromkeys(tuple(words) for words in sentences if words))
        self._rows.clear()
        with Progress(total=len(wanted), desc=name, unit=" sentences") as bar:
            for start in range(0, len(wanted), PIECE):
                piece = wanted[start : start + PIECE]
                made = (rows.astype(np.float16) for rows in self.encoder.encode(piece))
                self._rows.update(zip(piece, made, strict=True))
                bar.update(len(piece))

    def rows(self, sentence: Sequence[str]) -> np.ndarray:
        """The vectors of the words of a sentence given to the last `ensure`, (words, size), float16."""
        return self._rows[tuple(sentence)] if sentence else np.zeros((0, self.size), dtype=np.float16)


def _key(words: Sequence[str]) -> bytes:
    """The key of a sentence, different for different words. Raises ValueError for a word with a line feed."""
    text = BETWEEN_WORDS.join(words)
    if text.count(BETWEEN_WORDS) != len(words) - 1:
        number = next(number for number, word in enumerate(words) if BETWEEN_WORDS in word)
        raise ValueError(f"word {number}, {words[number]!r}, has a line feed in it; take it out")
    return key_of(text)


class PassingSentences(_Passing[SentenceEncoder]):
    """Like `SentenceEncodings`, but keeps only the sentences of the last `ensure` of the same thread, in
    memory."""

    def ensure(self, sentences: Iterable[str], *, name: str = "encoding") -> None:
        """Compute the vectors of all `sentences`, known or not, and forget all others."""
        wanted = list(dict.fromkeys(sentences))
        self._rows.clear()
        self._rows.update(zip(wanted, self.encoder.encode(wanted), strict=True))

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """The vectors of sentences given to the last `ensure`, (sentences, size), float32."""
        return np.array([self._rows[sentence] for sentence in sentences], dtype=np.float32)


class SentenceEncodings(_Encodings[SentenceEncoder]):
    """Vectors of sentences, stored in `<folder>/<fingerprint of the encoder>/`. Raises DataError when the
    files are inconsistent or do not fit the encoder."""

    def __init__(self, encoder: SentenceEncoder, folder: str | os.PathLike[str]) -> None:
        super().__init__(encoder, Path(folder) / encoder.fingerprint)

    def ensure(self, sentences: Iterable[str], *, name: str = "encoding") -> None:
        """Compute the vectors that are missing, with a progress bar called `name`."""
        wanted = {key_of(sentence): sentence for sentence in sentences}
        self._store.fill(wanted, self.encoder.encode, piece=SENTENCE_PIECE, name=name)

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """The vectors of sentences, (sentences, size), float32; computed first if missing (for many documents
        `ensure` beforehand is faster)."""
        self.ensure(sentences)
        rows = [self._store.rows(key_of(sentence)) for sentence in sentences]
        return np.concatenate(rows) if rows else np.zeros((0, self.size), dtype=np.float32)
