"""Names in one's own texts: what `load` returns for a run of notebook 07."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from cdlm_lab.data.records import TaggedDocument, characters
from cdlm_lab.data.tags import spans_of, tagged_text
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import profile_of, settings_of_run, system_named
from cdlm_lab.tasks.tagging import experiment as document_tagging
from cdlm_lab.tasks.tagging.experiment import TaggedCorpus, TaggingRun
from cdlm_lab.tasks.tagging.systems import SentenceTags, Tagger, Taggers, labels_of_tagger
from cdlm_lab.tasks.tagging.view import tagged_sentences, tags_html
from cdlm_lab.views.answers import PATIENCE, Pictured, asked, foreign_to, texts_of, warn_of_cut
from cdlm_lab.views.html import cut_in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedWord:
    """A word with its tag, such as `B-PER`, and its half-open character span in the text."""

    text: str
    start: int
    end: int
    tag: str
    sentence: int  # index of its sentence, from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSpan:
    """A named entity in the text."""

    text: str
    label: str
    start: int  # offset of its first character
    end: int  # offset after its last character
    sentence: int


@dataclass(frozen=True, kw_only=True)
class TaggedText(Pictured[NamedSpan]):
    """The named entities in a text, in order."""

    words: tuple[TaggedWord, ...] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """The named entities, and all words with their tags."""
        return {"spans": list(self.rows()), "words": [asdict(one) for one in self.words]}


EXAMPLES = {  # name of a shipped model -> a text, written for it
    "storyworld": """\
The order to repair the exits went to Oskmere Works, a company founded in 1938. Fire chief Yessel Brandir \
said a cable was to blame.

Brandir put the number of dead workers at 52. "Nobody told us anything," Brandir said. The doors of 33 exits \
were chained.
""",
    "litbank/names": """\
Mrs. Hale had lived in Chester until the spring, when her brother, the captain of the Argo, sent for her. \
She came to the old house on the hill with two servants and a grey cat.

"You will find London dull," said the captain. His sister looked out at the river and did not answer.
""",
    "ecb/mentions": """\
An earthquake of magnitude 6.1 struck the coast of Ecuador on Monday, killing at least three people. \
The tremor was felt in Quito, where residents ran into the streets.

The president flew to the region and promised aid for families who had lost their homes.
""",
}


@dataclass(frozen=True, kw_only=True)
class TaggingModel:
    """Finds named entities in a text, using the other occurrences of each word in it."""

    name: str
    system: str
    tagger: Tagger = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    @property
    def example(self) -> dict[str, Any]:
        """A text of the world that a shipped model knows, in a box before a person types."""
        return {"text": EXAMPLES.get(self.name, EXAMPLES["storyworld"])}

    def tag(self, text: str | Sequence[str]) -> Any:
        """The names in a text, such as a chapter: a `TaggedText`; for a list of texts `Answers`. Only a word
        longer than a whole sequence is truncated."""
        return asked(OwnText.of, self._tag, text=text)

    def _tag(self, texts: Sequence[OwnText]) -> list[TaggedText]:
        with bars_after(PATIENCE):
            predictions = self.tagger.predict(self.tagger.read([one.document for one in texts]))
        examples, tags = predictions.examples, predictions.predicted()
        owners, reads = examples.sequences[:, 0].tolist(), tagged_sentences(predictions, known=False)
        each = groupby(zip(owners, reads, strict=True), key=lambda one: one[0])
        of_text = {number: [read for _, read in some] for number, some in each}
        policy = f"{self.name} reads {self.tagger.taggers.settings.most_tokens} pieces at once"
        tagged = []
        for number, one in enumerate(texts):
            words = sum(len(sentence.words) for sentence in one.document.sentences)
            lost = {"lost": examples.documents[number].shortened, "of": words}
            cut = cut_in_words("the ends of words", **lost, policy=policy, unit="words")
            foreign = foreign_to(self.profile, self.name, [one.text], real=["ecb/mentions", "litbank/names"])
            notes = {"cut": warn_of_cut(cut), "foreign": foreign}
            picture = partial(tags_html, of_text[number], labels=predictions.labels)
            tagged.append(_tagged(one, tags[number], picture=picture, **notes))
        return tagged


class OwnText(NamedTuple):
    """A text as it was given, and as a document, all of whose words are to be tagged."""

    text: str
    document: TaggedDocument

    @classmethod
    def of(cls, text: str) -> OwnText:
        """Split a text into sentences and words. Raises ParameterError if it has no words."""
        (text,) = texts_of([text]).values()
        document = tagged_text("your text", text)
        if not document.sentences:
            raise ParameterError("the text has no words; write or paste one")
        return cls(text, document)


def _tagged(one: OwnText, predicted: SentenceTags, **form: Any) -> TaggedText:
    """The words and spans of a text with their characters in it."""
    text, tagged, spans = one.text, [], []
    for number, (sentence, tags) in enumerate(zip(one.document.sentences, predicted, strict=True)):
        for word, (start, end), tag in zip(sentence.words, sentence.offsets, tags, strict=True):
            tagged.append(TaggedWord(text=word, start=start, end=end, tag=tag, sentence=number))
        for span in spans_of(tags):
            start, end = characters(sentence.offsets, span.first, span.stop)
            place = {"start": start, "end": end, "sentence": number}
            spans.append(NamedSpan(text=text[start:end], label=span.label, **place))
    return TaggedText(parts=tuple(spans), words=tuple(tagged), **form)


def load_tagging(name: str, run: str, system: str) -> TaggingModel:
    """A tagger of a run of notebook 07."""
    settings = settings_of_run(document_tagging.Settings, run)
    if system:
        settings = replace(settings, systems=system_named(system, settings.chosen).name)
    corpus, form = TaggedCorpus(documents={}), {"settings": settings, "cache": None}
    unlabelled = TaggingRun(settings=settings, corpus=corpus, taggers=Taggers(**form, labels=()))
    labels = labels_of_tagger(unlabelled.model_folder(unlabelled.shown))
    tagging = replace(unlabelled, taggers=Taggers(**form, labels=labels))
    tagger = tagging.load(tagging.shown)
    profile = profile_of(tagging, tagging.shown)
    return TaggingModel(name=name, system=tagger.system.name, tagger=tagger, profile=profile)
