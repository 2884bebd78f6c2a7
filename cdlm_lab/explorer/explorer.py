"""The explorer of notebook 11 with the models behind it, which read what is opened in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.coreference import gold_names
from cdlm_lab.data.marked import nearly_a_mark
from cdlm_lab.data.records import CoreferenceDocument
from cdlm_lab.data.text_profile import foreign_to_a_model
from cdlm_lab.encoders.checkpoint import CheckpointError, shipped_folder
from cdlm_lab.encoders.encoder import load_encoder, load_language_model
from cdlm_lab.encoders.source_attention import predicts
from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.explorer.bertviz_box import ChosenSentences, sentences_in_bertviz
from cdlm_lab.explorer.opening import (
    NamedModel,
    Source,
    excerpts,
    models_to_open,
    own_source,
    sources_of,
)
from cdlm_lab.explorer.ranks import Analysis
from cdlm_lab.explorer.reading import Reader, Selection, panel_of, read_documents
from cdlm_lab.explorer.widget.content import OWN, Content, Opened, ShownDocument
from cdlm_lab.explorer.widget.widget import Explorer
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference.found import Finder
from cdlm_lab.views.answers import in_its_place
from cdlm_lab.views.html import counted, document_name, joined, shortened, visible
from cdlm_lab.views.rerun import close_earlier

KEPT_MODELS = 4  # most models held in memory
LONGEST_LABEL = 60


def explore(
    analysis: Analysis,
    *,
    models: Sequence[str] = ("longformer", "cdlm"),
    documents: Sequence[str] = (),
    own: str = "",
    mentions: Finder | None = None,
) -> ExploredCluster:
    """Load models, pack documents into their sequences, and open the explorer.

    Args:
        models: one or two of the run's variants, side by side.
        documents: names of documents of the corpus; () = those of a coreferring pair.
        own: a file or folder of other documents, with marks or without, in place of these, or a `.jsonl` of
            clusters, such as `cdlm-lab mine` writes, each of which is listed; "" = none.
        mentions: what finds mentions in typed texts without marks, such as `cdlm_lab.find_mentions`.

    Raises ParameterError for a variant without a model, no or more than two models, or an unknown document.
    """
    known = analysis.settings.checkpoints
    if missing := [name for name in models if name not in known]:
        raise ParameterError(
            f"models names {missing[0]!r}, for which no model is given; choose among {', '.join(known)}"
        )
    if not 1 <= len(models) <= 2:
        raise ParameterError(f"models names {len(models)} models; name one or two")
    close_earlier()  # before the models are opened, so that they are not there twice
    return ExploredCluster(
        analysis, models=tuple(models), sources=sources_of(analysis, documents, own), mentions=mentions
    )


class ExploredCluster:
    """The explorer over some documents, and its models. `documents` and `readers` are those open now."""

    documents: list[CoreferenceDocument]
    readers: list[Reader]

    def __init__(
        self,
        analysis: Analysis,
        *,
        models: Sequence[str],
        sources: Sequence[Source],
        mentions: Finder | None = None,
    ) -> None:
        self.analysis, self._mentions = analysis, mentions
        self._sources = {source.key: source for source in sources}
        self._models: Mapping[str, NamedModel] = models_to_open(analysis)
        self._on_opened: Callable[[], None] = lambda: None
        choices = {
            "examples": [_listed(source) for source in self._sources.values()],
            "models": [[key, visible(variant_name(model.label))] for key, model in self._models.items()],
        }
        content = self.open(Opened(example=next(iter(self._sources)), models=list(models)))
        self.view = Explorer(content, open=self.open, choices=choices, title="Where does the model look?")

    def open(self, opened: Opened) -> Content:
        """Read the documents with the models. Raises ValueError if they cannot be read."""
        own = opened.example == OWN
        source = own_source(opened.text, self._mentions) if own else self._sources[opened.example]
        loaded = {variant_name(self._models[key].label): self._load(key) for key in opened.models}
        known = {document.id: document for document in source.documents}
        whole = [known[name] for name in opened.documents or source.first]
        max_length, spans = self.analysis.settings.max_length, source.spans(whole)
        documents, firsts = whole, [0] * len(whole)
        if not source.whole:
            tokenizers = [tokenizer for _, tokenizer in loaded.values()]
            cut = excerpts(whole, tokenizers, max_length=max_length, around=spans)
            documents, firsts = [part for part, _ in cut], [first for _, first in cut]
        readers = read_documents(documents, loaded, max_length=max_length)
        self.documents, self.readers = documents, readers
        self._on_opened()
        places = [self._models[key].where for key in opened.models]
        texts = [" ".join(one.tokens) for one in documents]
        if foreign := foreign_to_a_model((shipped_folder(one) or one for one in places), texts):
            foreign += in_its_place(places[0], ["news/cdlm"])
        layers = min(reader.model.config.num_hidden_layers for reader in readers)
        ids = [] if opened.example == OWN else [one.id for one in documents]
        return Content(
            documents=_shown(documents, whole, source),
            models=[reader.name for reader in readers],
            layers=layers,
            heads=min(reader.model.config.num_attention_heads for reader in readers),
            answer=lambda chosen: [panel_of(reader, chosen) for reader in readers],
            predicts=all(predicts(reader.model) for reader in readers),
            cuts=all(reader.can_be_cut for reader in readers) and len(documents) > 1,
            selection=_first_words(source, documents, spans, firsts, layer=layers - 1),
            note="; ".join(filter(None, (_unread(documents, whole, readers, max_length), foreign))),
            opened=replace(opened, documents=ids),
        )

    def _load(self, key: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """The model of a key, as opened before for this analysis if its files are still the same."""
        model, kept = self._models[key], self.analysis.kept_models
        name, files = (model.variant, model.where), _files_of(model.where)
        if name not in kept or kept[name][0] != files:
            kept.pop(name, None)
            form = {"where": model.where}
            try:
                loaded = self.analysis.load(model.variant, load_language_model, **form)
            except CheckpointError:  # without a language-model head all but word prediction works
                loaded = self.analysis.load(model.variant, load_encoder, **form)
            if len(kept) >= KEPT_MODELS:
                del kept[next(iter(kept))]
            kept[name] = files, loaded
        return kept[name][1]

    @property
    def summary(self) -> str:
        """A sentence on how much is shown, and whether mentions are marked."""
        words = sum(len(document.tokens) for document in self.documents)
        counts = f"{counted(len(self.documents), 'document')}, {words:,} words"
        if mentions := sum(len(document.mentions) for document in self.documents):
            return f"{counts}, {mentions:,} mentions underlined"
        near = nearly_a_mark(self.documents)
        wrong = f" ({near} is not a mark; write <m> and </m>)" if near else ""
        return f"{counts}; no mention is marked{wrong}, so nothing is underlined, and all else works"

    def save(self) -> None:
        """Write the explorer as a page, `explorer.html`, into the run folder."""
        print("written:", self.view.save_html(self.analysis.folder / "explorer.html"))

    def chosen_sentences(self) -> ChosenSentences:
        """Buttons that show the explorer's current selection in bertviz."""
        buttons = ChosenSentences(self.in_bertviz, models=[reader.name for reader in self.readers])

        def offer() -> None:
            buttons.offer([reader.name for reader in self.readers])

        self._on_opened = offer
        return buttons

    def in_bertviz(self, model: str, view: str, direction: str) -> str:
        """The explorer's current selection in bertviz, as HTML."""
        (reader,) = (reader for reader in self.readers if reader.name == model)
        chosen = self.view.chosen
        reader, chosen = reader.edited(chosen.edits), replace(chosen, edits=())
        return sentences_in_bertviz(reader, chosen, view=view, direction=direction)


def _files_of(where: str) -> list[tuple[str, int, int]]:
    """What tells whether the files of a model were written anew; empty for a name of the hub."""
    folder = shipped_folder(where) or Path(where)
    files = [(file.name, file.stat()) for file in sorted(folder.glob("*")) if file.is_file()]
    return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in files]


def headline_of(document: CoreferenceDocument) -> str:
    """The first sentence of a document."""
    return joined(document.tokens[slice(*document.sentences[0])])


def _listed(source: Source) -> list[Any]:
    """A source in the explorer's list: key, label, and ids and labels of its documents."""
    first = next(one for one in source.documents if one.id == source.first[0])
    headline = f"{shortened(headline_of(first), LONGEST_LABEL)} ({len(source.documents)} documents)"
    label = shortened(source.label, LONGEST_LABEL, at_start=source.whole) or headline
    of = [(one.id, shortened(headline_of(one), LONGEST_LABEL)) for one in source.documents]
    return [source.key, visible(label), [[name, visible(f"{name}: {text}")] for name, text in of]]


def _shown(
    documents: Sequence[CoreferenceDocument], whole: Sequence[CoreferenceDocument], source: Source
) -> list[ShownDocument]:
    """The documents as they are shown; `whole`: before they were cut, for their names."""
    gold = gold_names(documents)
    return [
        ShownDocument(
            name=document_name(one.id, headline_of(uncut)),
            words=one.tokens,
            sentences=one.sentences,
            mentions=tuple((*mention.tokens, gold[mention.cluster]) for mention in one.mentions),
            spaces=source.spaces.get(one.id),
        )
        for one, uncut in zip(documents, whole, strict=True)
    ]


def _first_words(
    source: Source,
    documents: Sequence[CoreferenceDocument],
    spans: Sequence[tuple],
    firsts: Sequence[int],
    *,
    layer: int,
) -> Selection | None:
    """The pair of a source as a selection in documents that begin at words `firsts`; None if it was cut."""
    if source.pair is None:
        return None
    at = {
        document.id: (number, span[0] - first, span[1] - first)
        for number, (document, span, first) in enumerate(zip(documents, spans, firsts, strict=True))
    }
    places = [at.get(one.document) for one in (source.pair.source, source.pair.target)]
    return None if None in places else Selection(source=places[0], target=places[1], layer=layer)


def _unread(
    documents: Sequence[CoreferenceDocument],
    whole: Sequence[CoreferenceDocument],
    readers: Sequence[Reader],
    max_length: int,
) -> str:
    """A line on the words that are not shown or not read, "" if there are none."""
    shown, words = (sum(len(document.tokens) for document in of) for of in (documents, whole))
    lost = max(int(reader.firsts[-1]) - len(set(reader.words[reader.words >= 0])) for reader in readers)
    limit = f"the models read at once ({max_length:,} tokens, the parameter max_length)"
    if lost:
        return f"{counted(lost, 'word')}, in grey, are more than {limit}"
    if shown == words:
        return ""
    return f"{shown:,} of {words:,} words are shown, as many whole sentences as {limit}"
