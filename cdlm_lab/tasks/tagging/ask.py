"""Names in one's own texts: what `load` returns for a run of notebook 07."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from cdlm_lab.data.tags import spans_of
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.progress import bars_after
from cdlm_lab.runs.opened import profile_of, settings_of_run, system_named
from cdlm_lab.tasks.tagging import experiment as document_tagging
from cdlm_lab.tasks.tagging.experiment import TaggedCorpus, TaggingRun
from cdlm_lab.tasks.tagging.systems import Tagger, Taggers, labels_of_tagger, tag_own
from cdlm_lab.tasks.tagging.view import tags_html
from cdlm_lab.views.answers import PATIENCE, Pictured, foreign_to, texts_of, warn_of_cut
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


@dataclass(frozen=True, kw_only=True)
class TaggingModel:
    """Finds named entities in a text, using the other occurrences of each word in it."""

    name: str
    system: str
    tagger: Tagger = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def tag(self, text: str) -> TaggedText:
        """The names in a text, such as a chapter. Only a word longer than a whole sequence is truncated."""
        (text,) = texts_of([text]).values()
        with bars_after(PATIENCE):
            document, predictions = tag_own(self.tagger, text)
        shortened = sum(one.shortened for one in predictions.examples.documents)
        policy = f"{self.name} reads {self.tagger.taggers.settings.most_tokens} pieces at once"
        words = sum(len(sentence.words) for sentence in document.sentences)
        form = {"policy": policy, "unit": "words"}
        cut = warn_of_cut(cut_in_words("the ends of words", lost=shortened, of=words, **form))
        tagged, spans, end = [], [], 0
        (predicted,) = predictions.predicted()
        for number, (sentence, tags) in enumerate(zip(document.sentences, predicted, strict=True)):
            own = []
            for word, tag in zip(sentence.words, tags, strict=True):
                start = text.index(word, end)
                end = start + len(word)
                own.append(TaggedWord(text=word, start=start, end=end, tag=tag, sentence=number))
            for span in spans_of(tags):
                first, last = own[span.first].start, own[span.stop - 1].end
                place = {"start": first, "end": last, "sentence": number}
                spans.append(NamedSpan(text=text[first:last], label=span.label, **place))
            tagged += own
        picture = partial(tags_html, predictions)
        foreign = foreign_to(self.profile, self.name, [text])
        return TaggedText(parts=tuple(spans), words=tuple(tagged), picture=picture, foreign=foreign, cut=cut)


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
