"""Models for tasks, trained by notebooks 03 to 10; each answers as its notebook does for the reader's
texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cdlm_lab.apply.results import (
    Aligned,
    AlignedSentence,
    Answer,
    Clusters,
    Match,
    Mention,
    NamedSpan,
    RankedCandidate,
    Ranking,
    SupportingSentence,
    TaggedText,
    TaggedWord,
    Verdict,
    WeighedEvidence,
    foreign_to,
    list_of,
    texts_of,
    warn_of_cut,
)
from cdlm_lab.data.marked import marked_texts
from cdlm_lab.data.records import CoreferenceMention, DocumentPair
from cdlm_lab.data.tags import spans_of
from cdlm_lab.data.text_profile import TextProfile, texts_of_record
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import bars_after
from cdlm_lab.tasks.coreference.scoring import Scorer
from cdlm_lab.tasks.coreference.view import clusters_html, score_own, shown_clusters
from cdlm_lab.tasks.joint.answers_view import ranked_own, ranking_table
from cdlm_lab.tasks.joint.claims_view import judged_own, verdict_html
from cdlm_lab.tasks.joint.examples import fixed_order
from cdlm_lab.tasks.joint.ranking import Ranker
from cdlm_lab.tasks.joint.verifying import Verifier
from cdlm_lab.tasks.joint.view import ends_cut
from cdlm_lab.tasks.matching.ask import compared_own, own_pair, sentences_read
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.matching.systems import Matcher
from cdlm_lab.tasks.matching.view import pair_html
from cdlm_lab.tasks.multihop.experiment import MultihopRun
from cdlm_lab.tasks.multihop.systems import Answerer, question_on
from cdlm_lab.tasks.multihop.view import answered_questions, question_html
from cdlm_lab.tasks.tagging.systems import Tagger, tag_own
from cdlm_lab.tasks.tagging.view import tags_html
from cdlm_lab.views.html import cut_in_words

PATIENCE = 2.0  # seconds before a progress bar appears


@dataclass(frozen=True, kw_only=True)
class CoreferenceModel:
    """Clusters mentions of the same event or entity, across documents."""

    name: str
    kind: str  # kind of mentions it was trained on: event or entity
    threshold: float | None  # for merging clusters, chosen on dev; None = none was chosen
    scorer: Scorer = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def clusters(self, documents: Mapping[str, str], *, threshold: float | None = None) -> Clusters:
        """Cluster the mentions marked with `<m>` and `</m>` in documents, given by name. Long documents are
        truncated to the text around each pair of mentions.

        Args:
            threshold: the higher, the fewer mentions are merged; None = the one that was best on dev.
        """
        chosen = self.threshold if threshold is None else threshold
        if chosen is None or not 0 < chosen < 1:
            why = "the run chose none" if chosen is None else "it must lie between 0 and 1"
            raise ParameterError(f"threshold is {chosen}: {why}; give one, such as 0.5")
        topic = marked_texts(texts_of(documents), kind=self.kind)
        with bars_after(PATIENCE):
            own = score_own(self.scorer, topic)
        cut = warn_of_cut(own.cut)
        records = {one.id: one for one in topic.documents}

        def mention(one: CoreferenceMention) -> Mention:
            start, end = one.tokens
            return Mention(
                document=one.document, start=start, end=end, text=records[one.document].text_of(one)
            )

        clusters = tuple(tuple(map(mention, cluster)) for cluster in own.prediction.clusters(chosen))
        shown = shown_clusters([topic], own.prediction, chosen, gold=False)
        foreign, picture = (
            foreign_to(self.profile, self.name, documents.values()),
            partial(clusters_html, shown),
        )
        return Clusters(parts=clusters, threshold=chosen, picture=picture, foreign=foreign, cut=cut)


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


@dataclass(frozen=True, kw_only=True)
class MatchingModel:
    """Predicts whether one document cites, copies or reports another's content, and by which sentences."""

    name: str
    system: str
    source: str  # the global tokens for alignment by attention, a parameter of notebook 05
    run: MatchingRun = field(repr=False)
    matcher: Matcher = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def score(self, first: str, second: str) -> Match:
        """The probability that two documents belong together. Long documents are truncated."""
        pair, cut = self._pair(first, second)
        with bars_after(PATIENCE):
            probability = float(self.run.predict_pairs(self.matcher, [pair]).probabilities[0])
        foreign = foreign_to(self.profile, self.name, [first, second])
        return Match(probability=probability, system=self.matcher.system.label, foreign=foreign, cut=cut)

    def align(self, first: str, second: str) -> Aligned:
        """The weight of each sentence of the first document for its relation to the second."""
        pair, cut = self._pair(first, second)
        with bars_after(PATIENCE):
            column = compared_own(self.run, self.matcher, pair, self.matcher.system.label, source=self.source)
        both = enumerate(zip(pair.first.sentences, column.weights, strict=True))
        parts = (AlignedSentence(sentence=n, text=text, weight=weight) for n, (text, weight) in both)
        picture = partial(pair_html, pair, [column])
        notes = {"foreign": foreign_to(self.profile, self.name, [first, second]), "cut": cut}
        return Aligned(parts=tuple(parts), probability=column.decision, picture=picture, **notes)

    def _pair(self, first: str, second: str) -> tuple[DocumentPair, str]:
        """The two texts as a pair, and a line on what of them is not read."""
        texts_of([first, second])
        pair = own_pair(first, second)
        read, total = (
            sum(counts)
            for counts in (
                sentences_read(self.run, self.matcher, pair),
                (len(pair.first.sentences), len(pair.second.sentences)),
            )
        )
        if self.matcher.system.encoder == "longformer":
            policy = f"{self.name} reads {self.run.settings.max_length:,} tokens, of both an equal share"
        else:
            policy = f"{self.name} reads the first {self.run.settings.most_sentences} of each document"
        form = {"lost": total - read, "of": total, "policy": policy, "unit": "sentences"}
        return pair, warn_of_cut(cut_in_words("documents", **form))


@dataclass(frozen=True, kw_only=True)
class QuestionModel:
    """Answers questions over several documents, and names the sentences that support the answer."""

    name: str
    system: str
    run: MultihopRun = field(repr=False)
    answerer: Answerer = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def answer(self, question: str, documents: Mapping[str, str]) -> Answer:
        """Answer a question about documents, given by title. Documents that are too long are truncated."""
        whole = question_on(question, [*texts_of(documents).items()])
        fit = self.answerer.examples([whole], labelled=False).fit_facts()
        policy = f"{self.name} reads {self.answerer.max_length:,} at once, of each document an equal share"
        cut = warn_of_cut(cut_in_words("documents", lost=fit.tokens_lost, of=fit.tokens, policy=policy))
        with bars_after(PATIENCE):
            predictions = self.run.answers(self.answerer, [whole])
        (decoded,) = predictions.answers
        (read,) = answered_questions(predictions, support=self.run.settings.support)
        sentences = tuple(
            SupportingSentence(
                title=whole.paragraphs[paragraph].title,
                sentence=number,
                text=whole.paragraphs[paragraph].sentences[number].strip(),
                probability=float(probability),
                supports=(paragraph, number) in read.supporting,
            )
            for (paragraph, number), probability in sorted(read.sentence_probabilities.items())
        )
        return Answer(
            text=decoded.text,
            probability=decoded.probability,
            title=whole.paragraphs[decoded.place[0]].title if decoded.place else None,
            alternatives=tuple((span.text, float(span.score)) for span in decoded.n_best),
            parts=sentences,
            picture=partial(question_html, read),
            foreign=foreign_to(self.profile, self.name, texts_of_record(whole)),
            cut=cut,
        )


@dataclass(frozen=True, kw_only=True)
class AnswerModel:
    """Ranks candidate answers to a question."""

    name: str
    system: str
    label: str
    ranker: Ranker = field(repr=False)
    reading: Mapping[str, Any] = field(repr=False)  # batch size and precision
    profile: TextProfile | None = field(default=None, repr=False)

    def rank(self, question: str, candidates: Sequence[str]) -> Ranking:
        """The candidates, best first. Sentences that are too long are truncated."""
        candidates = list_of(candidates, name="candidates")
        texts_of({"the question": question, **{f"candidate {n}": one for n, one in enumerate(candidates)}})
        if not candidates:
            raise ParameterError("there is no candidate; give at least one")
        form = {"tokenizer": self.ranker.tokenizer, "length": self.ranker.model.head.form.length}
        cut = warn_of_cut(ends_cut(self.name, [question, *candidates], **form))
        with bars_after(PATIENCE):
            read = ranked_own({self.label: self.ranker}, question, candidates, **self.reading)
        numbers = fixed_order(tuple(candidates), key="own")
        probabilities = read.probabilities(self.label)
        parts = tuple(
            RankedCandidate(
                candidate=int(numbers[n]),
                text=read.candidates[n],
                probability=probabilities[n],
                read=read.read[n] if read.read else len(read.candidates[n]),
            )
            for n in read.order(self.label)
        )
        foreign = foreign_to(self.profile, self.name, [question, *candidates])
        picture = partial(ranking_table, replace(read, cut=""))  # the line stands above the picture
        return Ranking(parts=parts, picture=picture, foreign=foreign, cut=cut)


@dataclass(frozen=True, kw_only=True)
class ClaimModel:
    """Labels a claim given evidence."""

    name: str
    system: str
    verifier: Verifier = field(repr=False)
    precision: Precision = field(repr=False)
    profile: TextProfile | None = field(default=None, repr=False)

    def verify(self, claim: str, evidence: Sequence[str]) -> Verdict:
        """The label of a claim. Only the first sentences of evidence are read, as many as the model takes,
        and sentences that are too long are truncated."""
        evidence = list_of(evidence, name="evidence")
        texts_of({"the claim": claim, **{f"evidence {n}": one for n, one in enumerate(evidence)}})
        with bars_after(PATIENCE):
            read = judged_own(self.verifier, claim, evidence, precision=self.precision)
        cut = warn_of_cut(read.cut)
        shares = read.shares or [None] * len(read.evidence)
        weighed = enumerate(zip(read.evidence, shares, strict=True))
        return Verdict(
            label=read.predicted,
            probabilities=read.probabilities,
            parts=tuple(WeighedEvidence(evidence=n, text=text, share=share) for n, (text, share) in weighed),
            picture=partial(verdict_html, replace(read, cut=""), shares=self.verifier.system.shares),
            cut=cut,
            foreign=foreign_to(self.profile, self.name, [claim, *evidence]),
        )
