"""The gold of storyworld: mentions, tags, alignments, questions over two documents, candidates and claims."""

import re
from collections import Counter, defaultdict
from random import Random

import pytest

from cdlm_lab.data.records import SentenceRef, Story
from cdlm_lab.data.storyworld.catalogue import catalogue
from cdlm_lab.data.storyworld.gold import CANDIDATES, CLAIMS, SETS
from cdlm_lab.data.storyworld.plan import write_reports
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.storyworld.world import build_world

PRONOUNS = {"he", "she", "his", "her", "him"}


def at(one: Story, ref: SentenceRef) -> str:
    """The text of a sentence."""
    document = one.cluster.documents[ref.document]
    start, end = document.sentences[ref.sentence]
    return document.text[start:end]


def numbers(text: str) -> set[str]:
    """The numbers of a text, written as they are there."""
    return set(re.findall(r"\d+(?:,\d{3})*", text))


def test_mentions_are_names_descriptions_or_pronouns(many):
    kinds: Counter[str] = Counter()
    for one in many:
        for mention in one.mentions:
            text = one.cluster.documents[mention.document].text
            wording = text[mention.start : mention.end]
            assert wording == wording.strip()
            if mention.kind == "event":
                assert mention.chain.startswith("event:")
                assert re.fullmatch(r"[A-Za-z -]+", wording), wording
                continue
            if wording.lower() in PRONOUNS:
                kinds["pronoun"] += 1
            elif wording.lower().startswith("the "):
                kinds["description"] += 1
            else:
                assert wording[0].isupper(), (one.cluster.id, wording)
                kinds["name"] += 1
            assert not text[mention.end : mention.end + 1].isalpha()
            assert not text[max(0, mention.start - 1) : mention.start].isalpha()
    assert min(kinds["pronoun"], kinds["description"]) > 2 * len(many)


def test_a_chain_has_one_name(many):
    for one in many:
        names = defaultdict(set)
        for mention in one.mentions:
            wording = one.cluster.documents[mention.document].text[mention.start : mention.end]
            if (
                mention.kind == "entity"
                and wording[0].isupper()
                and wording.lower().split()[0] not in {"the", *PRONOUNS}
            ):
                names[mention.chain].add(wording)
        for chain, wording in names.items():
            longest = max(wording, key=len)
            assert all(name == longest or longest.endswith(f" {name}") for name in wording), (chain, wording)


def test_chains_span_documents(many):
    for one in many:
        places = defaultdict(set)
        for mention in one.mentions:
            places[mention.chain].add(mention.document)
        assert len(places["event:main"]) > 1
        assert sum(len(result) > 1 for result in places.values()) >= 6, one.cluster.id


def test_a_pronoun_follows_a_mention_of_its_chain(many):
    for one in many:
        known: set[tuple[int, str]] = set()
        for mention in sorted(one.mentions, key=lambda mention: (mention.document, mention.start)):
            wording = one.cluster.documents[mention.document].text[mention.start : mention.end].lower()
            if mention.kind == "entity":
                assert wording not in PRONOUNS or (mention.document, mention.chain) in known
                known.add((mention.document, mention.chain))


def test_tags(many):
    labels: Counter[str] = Counter()
    for one in many:
        for tag in one.tags:
            wording = one.cluster.documents[tag.document].text[tag.start : tag.end]
            labels[tag.label] += 1
            if tag.label in ("NUM", "DATE"):
                assert re.fullmatch(r"\d{4}" if tag.label == "DATE" else r"\d+(,\d{3})*", wording)
            else:
                assert wording[0].isupper()
    assert set(labels) == {"PER", "LOC", "ORG", "FAC", "DATE", "NUM", "MISC"}


def test_every_number_of_a_text_is_tagged(many):
    for one in many:
        tagged = Counter((tag.document, tag.label in ("NUM", "DATE")) for tag in one.tags)
        for number, document in enumerate(one.cluster.documents):
            assert tagged[number, True] == len(re.findall(r"\d+(?:,\d{3})*", document.text))


def test_aligned_sentences_state_the_same_number(many):
    for one in many:
        assert one.alignments
        assert len(set(one.alignments)) == len(one.alignments)
        for pair in one.alignments:
            assert pair.source.document < pair.target.document
            assert numbers(at(one, pair.source)) & numbers(at(one, pair.target))


@pytest.mark.parametrize("event", catalogue().events, ids=lambda event: event.name)
def test_every_core_unit_is_stated_in_two_reports_at_least(event):
    for number in range(20):
        rng = Random(number)
        world = build_world(rng, event)
        drafts, _ = write_reports(world, rng)
        for unit in event.core:
            ours = {key for template in unit.templates for key in template.keys} & set(event.numbers)
            holders = [
                any(
                    unit.key in sentence.units or ours & set(sentence.numbers)
                    for sentence in draft.writer.sentences
                )
                for draft in drafts
            ]
            assert sum(holders) > 1, (number, unit.key)


def test_questions_need_both_of_their_sentences(many):
    kinds: Counter[str] = Counter()
    for one in many:
        assert {question.hops for question in one.questions} == {"bridge", "comparison"}
        for question in one.questions:
            kinds[f"{question.hops} {question.type}"] += 1
            assert question.text.endswith("?")
            first, second = question.supporting
            assert first.document != second.document
            assert bool(question.answer_spans) == (question.type == "span")
            for document, start, end in question.answer_spans:
                assert one.cluster.documents[document].text[start:end] == question.answer
            if question.type != "span":
                assert question.answer == question.type
            elif question.hops == "bridge":
                assert_bridge(one, question.answer, clue=first, reply=second)
    assert {"bridge span", "comparison span", "comparison yes", "comparison no"} == set(kinds)


def assert_bridge(one: Story, answer: str, *, clue: SentenceRef, reply: SentenceRef) -> None:
    """The answer stands in the second document only, the clue in the first only; a name links them."""
    assert answer in at(one, reply)
    holders = [number for number, doc in enumerate(one.cluster.documents) if answer in doc.text]
    assert holders == [reply.document]

    def names(ref: SentenceRef) -> set[str]:
        document = one.cluster.documents[ref.document]
        start, end = document.sentences[ref.sentence]
        return {
            mention.chain
            for mention in one.mentions
            if mention.document == ref.document and start <= mention.start < end and mention.kind == "entity"
        }

    linking = names(clue) & names(reply)
    assert linking
    # the entity is called by name in both, and the clue's words are not in the answer's document
    body = at(one, clue)
    assert body not in one.cluster.documents[reply.document].text


def test_the_deed_that_a_bridge_question_asks_for_is_in_one_document_only(many):
    deeds = [deed for event in catalogue().events for deed in event.words["deed"]]
    wanted = 0
    for one in many:
        for question in one.questions:
            asked_for = question.text.removeprefix("Where did the person grow up who ").removesuffix("?")
            for deed in (deed for deed in deeds if deed == asked_for):
                wanted += 1
                holders = [number for number, doc in enumerate(one.cluster.documents) if deed in doc.text]
                assert holders == [question.supporting[0].document]
    assert wanted > 20


def test_comparisons_are_right(many):
    """Read both counts from the sentences: the number that is not a population stands before its unit."""
    checked = 0
    for one in many:
        question = next(question for question in one.questions if question.hops == "comparison")
        counts = {}
        for ref in question.supporting:
            named = next(
                one.cluster.documents[ref.document].text[m.start : m.end]
                for m in one.mentions
                if m.document == ref.document and m.chain.startswith("place_")
            )
            text = re.sub(r"of [\d,]+ people", "", at(one, ref))
            result = [int(number) for number in re.findall(r"\b\d{3}\b", text)]
            if len(result) == 1:
                counts[named] = result[0]
        assert all(named in question.text for named in counts)
        if len(counts) == 2:
            checked += 1
            more = max(counts, key=counts.get)
            first = min(counts, key=question.text.index)
            assert question.answer == {"span": more, "yes": more, "no": more}[question.type] or (
                question.answer == ("yes" if first == more else "no")
            )
    assert checked > len(many) / 2


def test_candidates(many):
    for one in many:
        assert 1 <= len(one.candidate_sets) <= SETS
        for result in one.candidate_sets:
            assert result.question.endswith("?")
            assert len(result.candidates) == len(result.correct) == len(set(result.candidates))
            assert len(result.candidates) <= CANDIDATES
            assert any(result.correct)
            assert not all(result.correct)
            documents = [document.text for document in one.cluster.documents]
            assert any(all(sentence in text for sentence in result.candidates) for text in documents)
            right = [
                numbers(text) for text, good in zip(result.candidates, result.correct, strict=True) if good
            ]
            assert set.intersection(*right)


def test_claims(many):
    labels: Counter[str] = Counter()
    for one in many:
        assert max(Counter(claim.label for claim in one.claims).values()) <= CLAIMS
        for claim in one.claims:
            labels[claim.label] += 1
            (value,) = numbers(claim.text)
            stated = [value in numbers(at(one, ref)) for ref in claim.evidence]
            assert claim.text.endswith(".")
            if claim.label == "supported":
                assert stated
                assert all(stated)
            elif claim.label == "refuted":
                assert stated
                assert not any(stated)
            else:
                assert not stated
    assert min(labels.values()) > len(many)


def test_claims_of_each_label_are_about_the_same_things():
    """No label can be told from the wording alone: what is unknown in one cluster is stated in others."""
    wordings = defaultdict(set)
    for one in stories(seed=0, split="train", stop=500):
        for claim in one.claims:
            wordings[claim.label].add(re.sub(r"\d[\d,]*", "#", re.sub(r"\b[A-Z]\w+", "N", claim.text[1:])))
    unknown = wordings["not enough info"]
    assert len(unknown & (wordings["supported"] | wordings["refuted"])) / len(unknown) > 0.9
