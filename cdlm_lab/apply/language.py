"""Apply a language model to texts: token vectors, words for blanks, attention between texts.

Texts that are given together are read together, in one sequence, each between `<doc-s>` and `</doc-s>`. If
they are longer than the model's maximum length they are truncated, with a `TextCut` warning: each gets an
equal share of the room, what a short one leaves goes to the others, and it loses its end, or what is farthest
from its blanks.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from cdlm_lab.apply.results import Attended, AttendedWord, EncodedText, Encodings, Filled, FilledBlank
from cdlm_lab.attention.global_tokens import global_tokens
from cdlm_lab.data.marked import marked_texts
from cdlm_lab.data.records import CoreferenceDocument
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.data.words import plain_word
from cdlm_lab.encoders.source_attention import CutAsGiven, apart, evaluating, predicts
from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.examples.packing import equal_share, pack_documents
from cdlm_lab.examples.tokens import SpecialTokens, from_tokenizer, tokenise
from cdlm_lab.explorer.hidden_words import WordPieces, fill_blank
from cdlm_lab.explorer.reading import Place, Selection, panel_of, read_documents
from cdlm_lab.parameters import ParameterError
from cdlm_lab.views.answers import asked, foreign_to, texts_of, warn_of_cut
from cdlm_lab.views.html import cut_in_words

MASK = "[MASK]"
AT_ONCE = 8  # most sequences that are encoded in one batch
Texts = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """A trained language model or encoder that reads texts."""

    name: str
    max_length: int  # most tokens of all texts together, special tokens included
    # Of CDLM's ablation; determines which tokens are global when blanks are filled. "" = unknown, or none of
    # them: no token is.
    variant: str
    model: PreTrainedModel = field(repr=False)
    tokenizer: PreTrainedTokenizerFast = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def encode(self, texts: Texts | Sequence[Texts], *, together: bool = True) -> Any:
        """Tokens, character offsets and vectors of each text: `Encodings`; for a list whose entries are lists
        of texts, or texts by name, `Answers`.

        Args:
            together: True = read all texts of an entry in one sequence, whose first token has global
                attention, as in document matching; False = read each text alone.
        """

        def encoded(entries: Sequence[Mapping[str, str]]) -> list[Encodings]:
            return self._encodings(entries, together=together)

        return asked(texts_of, encoded, texts=_entries(texts))

    def _encodings(self, entries: Sequence[Mapping[str, str]], *, together: bool) -> list[Encodings]:
        packed = [
            [self._packed(group) for group in ([named] if together else [{n: t} for n, t in named.items()])]
            for named in entries
        ]
        states = iter(self._states([one.input_ids for some in packed for one in some]))
        encodings = []
        for named, some in zip(entries, packed, strict=True):
            parts = [part for one in some for part in one.encoded(next(states))]
            notes = {"foreign": self._foreign(named), "cut": "; ".join(one.cut for one in some if one.cut)}
            encodings.append(Encodings(parts=tuple(parts), **notes))
        return encodings

    def _packed(self, named: Mapping[str, str]) -> _Packed:
        """Texts that are read together, as one sequence."""
        read = tokenise([*named.values()], self.tokenizer, return_offsets_mapping=True)
        rooms, cut = self._rooms(dict(zip(named, map(len, read["input_ids"]), strict=True)))
        kept = [ids[:room] for ids, room in zip(read["input_ids"], rooms, strict=True)]
        packed = pack_documents(kept, max_length=self.max_length, policy="equal_share", special=self._special)
        places = [
            np.array(offsets[:room], dtype=np.int64).reshape(-1, 2)
            for offsets, room in zip(read["offset_mapping"], rooms, strict=True)
        ]
        texts, of_text = tuple(named.values()), np.where(packed.is_special, -1, packed.document)
        return _Packed(input_ids=packed.input_ids, of_text=of_text, texts=texts, places=places, cut=cut)

    def _states(self, sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The last states of each sequence, float32 (seq, dim), read in batches of similar lengths."""
        states: list[np.ndarray] = [np.empty(0)] * len(sequences)
        order = sorted(range(len(sequences)), key=lambda number: len(sequences[number]))
        for start in range(0, len(order), AT_ONCE):
            numbers = order[start : start + AT_ONCE]
            ids = [torch.from_numpy(sequences[number]) for number in numbers]
            padded = pad_sequence(ids, batch_first=True, padding_value=self.tokenizer.pad_token_id)
            sizes = torch.tensor([len(one) for one in ids])
            mask = (torch.arange(padded.shape[1]) < sizes[:, None]).long().to(self.model.device)
            is_global = torch.zeros_like(mask)
            is_global[:, 0] = 1
            with evaluating(self.model), torch.inference_mode():
                form = {"attention_mask": mask, "global_attention_mask": is_global}
                output = self.model.base_model(padded.to(self.model.device), **form).last_hidden_state
            for number, row, size in zip(numbers, output.float().cpu().numpy(), sizes.tolist(), strict=True):
                states[number] = row[:size]
        return states

    def fill(
        self, texts: Texts | Sequence[Texts], *, top: int = 5, pieces: int = 4, cut: CutAsGiven = None
    ) -> Any:
        """The most probable words for each blank, `[MASK]`, given all texts; the other blanks stay masked:
        `Filled`; for a list whose entries are lists of texts, or texts by name, `Answers`. A probability is
        the product of those of a word's pieces; where the `top` best words of each number of pieces, which
        are compared, have more than 1 together, theirs are divided by their sum.

        Args:
            top: number of words for each blank; also the beam width.
            pieces: most word pieces of a word; time grows with its square.
            cut: `"documents"` = no text attends to another; see `apart` for layers, heads and the control.
        """
        if not predicts(self.model):
            raise ParameterError(f"{self.name} has no language-model head, so it cannot fill blanks")
        if top < 1 or pieces < 1:
            raise ParameterError(f"top is {top} and pieces {pieces}; both must be at least 1")

        def filled(entries: Sequence[Mapping[str, str]]) -> list[Filled]:  # blanks are read one by one
            with apart(self.model, self.tokenizer, cut):
                return [self._fill(named, top=top, pieces=pieces) for named in entries]

        return asked(self._with_a_blank, filled, texts=_entries(texts))

    def _with_a_blank(self, texts: Texts) -> dict[str, str]:
        named = texts_of(texts)
        if not any(map(self.has_blank, named.values())):
            raise ParameterError(f"no text has a blank; write {MASK} where a word is to be found")
        return named

    def _fill(self, named: Mapping[str, str], *, top: int, pieces: int) -> Filled:
        blanks = [(n, match) for n, text in enumerate(named.values()) for match in self._blank.finditer(text)]
        sequence, cut = self._with_blanks(named, room=self.max_length - (pieces - 1))
        places = np.flatnonzero(sequence == self._special.mask).tolist()
        policy, filled = VARIANTS[self.variant].global_policy if self.variant else "none", []
        for (number, match), place in zip(blanks, places, strict=True):
            words = fill_blank(
                self.model,
                self._words,
                sequence,
                place,
                glued=self._words.is_glued(match.string[: match.start()]),
                globals_of=lambda is_blank: global_tokens(policy, labels=np.where(is_blank, 0, NOT_MASKED)),
                pieces=pieces,
                top=top,
            )
            filled.append(FilledBlank(text=number, start=match.start(), words=tuple(words)))
        return Filled(parts=tuple(filled), foreign=self._foreign(named), cut=cut)

    def has_blank(self, text: str) -> bool:
        """True if a text has a blank."""
        return self._blank.search(text) is not None

    def attention(
        self,
        texts: Texts | Sequence[Texts],
        source: tuple[int, str] | Sequence[tuple[int, str]],
        *,
        cut: CutAsGiven = None,
    ) -> Any:
        """How strongly attention in the last layer connects the words of the other texts to a source: an
        `Attended`; for a list whose entries are lists of texts, or texts by name, and one of sources
        `Answers`.

        Args:
            source: index of a text, from 0, and words in it, of which the first occurrence is taken. They are
                global: they attend to all texts, and all attend to them, as in CDLM's analysis (section 3.5).
            cut: attention between texts that is forbidden, such as `{"layers": [0]}`; see `apart`.
        """

        def attended(entries: Sequence[tuple[dict[str, str], tuple[int, str]]]) -> list[Attended]:
            with apart(self.model, self.tokenizer, cut):
                return [self._attended(*one) for one in entries]

        return asked(_with_another, attended, texts=_entries(texts), source=source)

    def _attended(self, named: Mapping[str, str], source: tuple[int, str]) -> Attended:
        documents = list(marked_texts(named, kind="event", needs_marks=False).documents)
        place = _place_of(documents, source)
        form = {self.name: (self.model, self.tokenizer)}
        (reader,) = read_documents(documents, form, max_length=self.max_length)
        lost, total = reader.sequence.lost_tokens, len(reader.sequence.input_ids)
        notes = {"cut": self._warn(list(named), lost, total), "foreign": self._foreign(named)}
        selection = Selection(source=place, layer=self.model.config.num_hidden_layers - 1)
        panel = panel_of(reader, selection)
        others = np.flatnonzero(reader.ranked & panel.read & (reader.document_of_word != place[0]))
        words = [word for one in documents for word in one.tokens]
        offsets = [place for one in documents for place in one.offsets]
        attended = tuple(
            AttendedWord(
                text=int(reader.document_of_word[number]),
                place=int(number - reader.firsts[reader.document_of_word[number]]),
                start=offsets[number][0],
                end=offsets[number][1],
                word=words[number],
                score=float(panel.scores[number]),
                rank=float(panel.ranks[number]),
            )
            for number in others
        )
        words_of_texts = tuple(one.tokens for one in documents)
        return Attended(source=source[1], parts=attended, texts=words_of_texts, **notes)

    def _foreign(self, named: Mapping[str, str]) -> str:
        return foreign_to(self.profile, self.name, named.values(), real=["news/cdlm"])

    @cached_property
    def _special(self) -> SpecialTokens:
        return from_tokenizer(self.tokenizer)

    @cached_property
    def _words(self) -> WordPieces:
        return WordPieces(self.tokenizer)

    @cached_property
    def _blank(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, {MASK, self.tokenizer.mask_token})))

    def _with_blanks(self, named: Mapping[str, str], *, room: int) -> tuple[np.ndarray, str]:
        """The sequence of the texts with one mask token for each blank, int64 (seq,), and a line on what is
        not read."""
        tokens = {name: self._blanked(text) for name, text in named.items()}
        rooms, cut = self._rooms({name: len(ids) for name, ids in tokens.items()}, most=room)
        kept = []
        for (name, ids), own in zip(tokens.items(), rooms, strict=True):
            blanks = [place for place, number in enumerate(ids) if number == self._special.mask] or [0]
            if blanks[-1] - blanks[0] >= own:
                raise ParameterError(
                    f"{name}: its blanks are {blanks[-1] - blanks[0]:,} tokens apart, but there is room for "
                    f"{own:,}; leave out text between them, or give fewer texts"
                )
            first = min(max((blanks[0] + blanks[-1] - own) // 2, 0), len(ids) - own)
            kept.append(ids[first : first + own])
        packed = pack_documents(kept, max_length=self.max_length, policy="equal_share", special=self._special)
        return packed.input_ids, cut

    def _blanked(self, text: str) -> list[int]:
        """Token ids of a text, with one mask for each blank; a space before a blank is part of its word."""
        *before, last = self._blank.split(text)
        pieces = tokenise([*(part.rstrip() for part in before), last], self.tokenizer)["input_ids"]
        masked = [[*ids, self._special.mask] for ids in pieces[:-1]]
        return [number for ids in (*masked, pieces[-1]) for number in ids]

    def _rooms(self, lengths: Mapping[str, int], *, most: int | None = None) -> tuple[list[int], str]:
        """The number of tokens read of each text, and a line on what is not read. Raises
        ParameterError if there is no room for so many texts."""
        if silent := [name for name, length in lengths.items() if not length]:
            raise ParameterError(f"{silent[0]} has no character that the model knows; leave it out")
        budget = (most or self.max_length) - self._special.framing
        rooms, _ = equal_share([*lengths.values()], budget=budget, per_document=self._special.per_document)
        if 0 in rooms:
            raise ParameterError(
                f"{self.name} reads {self.max_length:,} tokens at once, which leaves no room for "
                f"{len(lengths):,} texts; give fewer"
            )
        lost = [a - b for a, b in zip(lengths.values(), rooms, strict=True)]
        return rooms, self._warn(list(lengths), lost, sum(rooms))

    def _warn(self, names: Sequence[str], lost: Sequence[int], total: int) -> str:
        what = ", ".join(name for name, count in zip(names, lost, strict=True) if count)
        policy = f"{self.name} reads {self.max_length:,} at once, of each text an equal share"
        return warn_of_cut(cut_in_words(what, lost=sum(lost), of=total + sum(lost), policy=policy))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Packed:
    """Texts as one sequence."""

    input_ids: np.ndarray  # int64 (seq,)
    of_text: np.ndarray  # int64 (seq,), index of the text; -1 = special token
    texts: Sequence[str]
    places: Sequence[np.ndarray]  # of each text int64 (tokens, 2), half-open spans of characters
    cut: str  # a line on what is not read

    def encoded(self, states: np.ndarray) -> Iterator[EncodedText]:
        """Each text with its own of the states (seq, dim)."""
        for number, (text, places) in enumerate(zip(self.texts, self.places, strict=True)):
            tokens = tuple(text[start:end] for start, end in places.tolist())
            yield EncodedText(tokens=tokens, offsets=places, vectors=states[self.of_text == number])


def _entries(texts: Texts | Sequence[Texts]) -> Any:
    """Texts as `asked` takes them: those that are read together by name, several entries as they are."""
    several = not isinstance(texts, str | Mapping) and all(
        isinstance(one, Mapping | Sequence) and not isinstance(one, str) for one in texts
    )
    return texts if several and len(texts) else texts_of(texts)


def _with_another(texts: Texts, source: tuple[int, str]) -> tuple[dict[str, str], tuple[int, str]]:
    named = texts_of(texts)
    if len(named) < 2:
        raise ParameterError("there is one text; give another one, whose words are to be ranked")
    return named, source


def _place_of(documents: Sequence[CoreferenceDocument], source: tuple[int, str]) -> Place:
    """The first occurrence of words in a document. Raises ParameterError if they do not occur there."""
    try:
        number, words = source
        wanted = [
            plain_word(word).casefold()
            for word in marked_texts({"source": words}, kind="event", needs_marks=False).documents[0].tokens
        ]
        document = documents[number]
    except (TypeError, ValueError, IndexError):
        raise ParameterError(
            f"source is {source!r}; give the number of a text, from 0 to {len(documents) - 1}, and words in "
            'it: (0, "recount")'
        ) from None
    known = [plain_word(word).casefold() for word in document.tokens]
    for start in range(len(known) - len(wanted) + 1):
        if known[start : start + len(wanted)] == wanted:
            return number % len(documents), start, start + len(wanted)
    close = difflib.get_close_matches(wanted[0], known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ParameterError(f"text {number} has no {words!r}{hint}")
