"""The explorer of notebook 11 with models behind it: which documents and which models it opens with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention
from cdlm_lab.data.typed_documents import nearly_a_mark, read_marked_documents
from cdlm_lab.examples.mention_pairs import AlignedPair
from cdlm_lab.experiments.attention_analysis.ranks import Analysis
from cdlm_lab.experiments.attention_analysis.reading import Reader, panel_of, read_documents, shown_document
from cdlm_lab.experiments.attention_analysis.sentences import overview_of, sentences_in_bertviz
from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.encoder import load_encoder, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.ask import ChosenSentences
from cdlm_lab.widgets.explorer import Explorer, Selection
from cdlm_lab.widgets.html import variant_name


def explore(analysis: Analysis) -> ExploredCluster:
    """Load the models that the parameter `explore` names, write the documents into their sequences, open the
    explorer. Raises ParameterError: a variant without a model, none, or more than two; a name that no
    document has."""
    settings = analysis.settings
    names, known = settings.explore.split(), settings.checkpoints
    if missing := [name for name in names if name not in known]:
        raise ParameterError(
            f"explore names {missing[0]!r}, for which no model is given; choose among {', '.join(known)}"
        )
    if not 1 <= len(names) <= 2:
        raise ParameterError(f"explore names {len(names)} models; name one or two, separated by a space")
    documents, selection = documents_to_explore(analysis)
    loaded = {}
    for name in names:
        try:
            loaded[variant_name(name)] = analysis.load(name, load_language_model)
        except CheckpointError:  # without a head no words can be predicted, but all else can be seen
            loaded[variant_name(name)] = analysis.load(name, load_encoder)
    readers = read_documents(documents, loaded, max_length=settings.max_length)
    view = explorer(documents, readers, selection=selection)
    return ExploredCluster(analysis=analysis, documents=documents, readers=readers, view=view)


def documents_to_explore(analysis: Analysis) -> tuple[list[CoreferenceDocument], Selection | None]:
    """The documents to show, and the words to begin with: one's own documents, those that are named, or those
    of a pair of events that corefer in different words."""
    names, own = analysis.settings.explore_documents, analysis.settings.own_documents
    if own and names:
        raise ParameterError("own_documents and explore_documents are both given; leave one empty")
    if own:
        return list(read_marked_documents(own, kind="event", needs_marks=False).documents), None
    known = {document.id: document for topic in analysis.topics for document in topic.documents}
    if names:
        if missing := [name for name in names.split() if name not in known]:
            raise ParameterError(
                f"explore_documents names {missing[0]}, which is not there; the documents are "
                f"{', '.join(sorted(known)[:20])}{', ...' if len(known) > 20 else ''}"
            )
        return [known[name] for name in names.split()], None
    pair = _in_different_words(analysis.pairs["event"], known)
    chosen = Selection(source=(0, *pair.source.tokens), target=(1, *pair.target.tokens))
    return [known[mention.document] for mention in (pair.source, pair.target)], chosen


def _in_different_words(
    pairs: Sequence[AlignedPair], documents: Mapping[str, CoreferenceDocument]
) -> AlignedPair:
    """Of the pairs that corefer and share no word, or of all that corefer, the one with the shortest
    documents: they are shown beside each other."""
    positive = [pair for pair in pairs if pair.corefer]

    def words(mention: CoreferenceMention) -> set[str]:
        return set(documents[mention.document].text_of(mention).casefold().split())

    def length(pair: AlignedPair) -> int:
        return sum(len(documents[mention.document].tokens) for mention in (pair.source, pair.target))

    different = [pair for pair in positive if not words(pair.source) & words(pair.target)]
    return min(different or positive, key=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExploredCluster:
    """The explorer over some documents, and the models behind it."""

    analysis: Analysis
    documents: list[CoreferenceDocument]
    readers: list[Reader]
    view: Explorer

    @property
    def summary(self) -> str:
        """How much is shown, and what is not, as nobody marked it."""
        words = sum(len(document.tokens) for document in self.documents)
        counts = f"{len(self.documents)} documents, {words:,} words"
        if mentions := sum(len(document.mentions) for document in self.documents):
            return f"{counts}, {mentions:,} mentions underlined"
        near = nearly_a_mark(self.documents)
        wrong = f" ({near} is not a mark; write <m> and </m>)" if near else ""
        return f"{counts}; no mention is marked{wrong}, so nothing is underlined, and all else works"

    def save(self) -> None:
        """Write `explorer.html`, and `explorer.png` where Chromium is installed, into the run's folder."""
        folder = self.analysis.opened.folder
        print("written:", self.view.save_html(folder / "explorer.html"))
        try:
            print("written:", self.view.save_png(folder / "explorer.png"))
        except RuntimeError as error:
            print(f"no picture: {error}")

    def chosen_sentences(self) -> ChosenSentences:
        """Buttons that show in bertviz what is chosen in the explorer."""
        return ChosenSentences(self.in_bertviz, models=[reader.name for reader in self.readers])

    def in_bertviz(self, model: str, view: str, direction: str) -> str:
        """What is chosen in the explorer now, as `sentences_in_bertviz` shows it."""
        (reader,) = (reader for reader in self.readers if reader.name == model)
        chosen = self.view.chosen
        return sentences_in_bertviz(reader, self.documents, chosen, view=view, direction=direction)


def explorer(
    documents: Sequence[CoreferenceDocument],
    readers: Sequence[Reader],
    *,
    selection: Selection | None = None,
) -> Explorer:
    """The widget over documents and the models that read them; `selection`: at first, in the last layer."""
    shown = [shown_document(document) for document in documents]
    layers = min(reader.model.config.num_hidden_layers for reader in readers)
    counts = np.concatenate([document.counts for document in shown])
    return Explorer(
        shown,
        models=[reader.name for reader in readers],
        layers=layers,
        heads=min(reader.model.config.num_attention_heads for reader in readers),
        answer=lambda chosen: [panel_of(reader, chosen, counts) for reader in readers],
        overview=lambda tell: overview_of(readers, shown, tell),
        predicts=all(hasattr(reader.model, "lm_head") for reader in readers),
        selection=selection and replace(selection, layer=layers - 1),
        title="Where does the model look?",
    )
