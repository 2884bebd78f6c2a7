"""The gold of storyworld: mentions, tags, alignments, questions over two documents, candidates and claims."""

import re
from collections import Counter, defaultdict

from cdlm_lab.data.records import EntityTag, Mention, SentenceRef, Story
from cdlm_lab.data.storyworld.catalogue import catalogue
from cdlm_lab.data.storyworld.gold import CANDIDATES, CLAIMS, SETS
from cdlm_lab.data.storyworld.stories import stories

PRONOUNS = {"he", "she", "his", "her", "him"}


def sentence(one: Story, ref: SentenceRef) -> str:
    document = one.cluster.documents[ref.document]
    start, end = document.sentences[ref.sentence]
    return document.text[start:end]


def wording(one: Story, item: Mention | EntityTag) -> str:
    return one.cluster.documents[item.document].text[item.start : item.end]


def numbers(text: str) -> set[str]:
    """The numbers of a text, written as they are there."""
    return set(re.findall(r"\d+(?:,\d{3})*", text))


def test_mentions_are_names_descriptions_or_pronouns_and_chains_span_documents(many):
    kinds: Counter[str] = Counter()
    for one in many:
        names, places = defaultdict(set), defaultdict(set)
        known: set[tuple[int, str]] = set()
        for mention in sorted(one.mentions, key=lambda mention: (mention.document, mention.start)):
            text, words = one.cluster.documents[mention.document].text, wording(one, mention)
            assert words == words.strip()
            assert not text[mention.end : mention.end + 1].isalpha() or mention.kind == "event"
            places[mention.chain].add(mention.document)
            if mention.kind == "event":
                assert mention.chain.startswith("event:")
                assert re.fullmatch(r"[A-Za-z -]+", words), words
                continue
            assert not text[max(0, mention.start - 1) : mention.start].isalpha()
            is_pronoun, is_description = words.lower() in PRONOUNS, words.lower().startswith("the ")
            kinds["pronoun" if is_pronoun else "description" if is_description else "name"] += 1
            assert not is_pronoun or (mention.document, mention.chain) in known  # it follows another mention
            known.add((mention.document, mention.chain))
            if not is_pronoun and not is_description:
                assert words[0].isupper(), (one.cluster.id, words)
                names[mention.chain].add(words)
        for words in names.values():  # a chain has one name
            longest = max(words, key=len)
            assert all(name == longest or longest.endswith(f" {name}") for name in words), words
        assert places["event:main"] == set(range(len(one.cluster.documents))), one.cluster.id
        assert sum(len(documents) > 1 for documents in places.values()) >= 6, one.cluster.id
    assert min(kinds["pronoun"], kinds["description"]) > 2 * len(many)


def test_every_name_and_number_is_tagged(many):
    labels: Counter[str] = Counter()
    for one in many:
        counts: Counter[int] = Counter()
        for tag in one.tags:
            words = wording(one, tag)
            labels[tag.label] += 1
            if tag.label in ("NUM", "DATE"):
                counts[tag.document] += 1
                assert re.fullmatch(r"\d{4}" if tag.label == "DATE" else r"\d+(,\d{3})*", words)
            else:
                assert words[0].isupper()
        for number, document in enumerate(one.cluster.documents):
            assert counts[number] == len(re.findall(r"\d+(?:,\d{3})*", document.text))
    assert set(labels) == {"PER", "LOC", "ORG", "FAC", "DATE", "NUM", "MISC"}


def test_aligned_sentences_state_the_same_number(many):
    for one in many:
        assert one.alignments
        assert len(set(one.alignments)) == len(one.alignments)
        for pair in one.alignments:
            assert pair.source.document < pair.target.document
            assert numbers(sentence(one, pair.source)) & numbers(sentence(one, pair.target))


def test_questions_need_both_of_their_sentences(many):
    kinds: Counter[str] = Counter()
    deeds = {deed for event in catalogue().events for deed in event.words["deed"]}
    by_deed = 0
    for one in many:
        assert {question.hops for question in one.questions} == {"bridge", "comparison"}
        texts = [document.text for document in one.cluster.documents]
        for question in one.questions:
            kinds[f"{question.hops} {question.type}"] += 1
            assert question.text.endswith("?")
            first, second = question.supporting
            assert first.document != second.document
            assert bool(question.answer_spans) == (question.type == "span")
            for document, start, end in question.answer_spans:
                assert texts[document][start:end] == question.answer
            if question.type != "span":
                assert question.answer == question.type
            elif question.hops == "bridge":
                assert_bridge(one, question.answer, clue=first, reply=second)
            deed = question.text.removeprefix("Where did the person grow up who ").removesuffix("?")
            if deed in deeds:  # it is in one document only
                by_deed += 1
                assert [place for place, text in enumerate(texts) if deed in text] == [first.document]
    assert {"bridge span", "comparison span", "comparison yes", "comparison no"} == set(kinds)
    assert by_deed > 20


def assert_bridge(one: Story, answer: str, *, clue: SentenceRef, reply: SentenceRef) -> None:
    """The answer stands in the second document only, the clue in the first only; a name links them."""
    assert answer in sentence(one, reply)
    holders = [number for number, document in enumerate(one.cluster.documents) if answer in document.text]
    assert holders == [reply.document]
    chains = []
    for ref in (clue, reply):
        start, end = one.cluster.documents[ref.document].sentences[ref.sentence]
        inside = (m for m in one.mentions if m.document == ref.document and start <= m.start < end)
        chains.append({mention.chain for mention in inside if mention.kind == "entity"})
    assert set.intersection(*chains)
    assert sentence(one, clue) not in one.cluster.documents[reply.document].text


def test_comparisons_are_right(many):
    """Read both counts from the sentences: the number that is not a population stands before its unit."""
    checked = 0
    for one in many:
        question = next(question for question in one.questions if question.hops == "comparison")
        counts = {}
        for ref in question.supporting:
            places = (m for m in one.mentions if m.document == ref.document and m.chain.startswith("place_"))
            text = re.sub(r"of [\d,]+ people", "", sentence(one, ref))
            result = [int(number) for number in re.findall(r"\b\d{3}\b", text)]
            if len(result) == 1:
                counts[wording(one, next(places))] = result[0]
        assert all(name in question.text for name in counts)
        if len(counts) == 2:
            checked += 1
            more, first = max(counts, key=counts.get), min(counts, key=question.text.index)
            assert question.answer in (more, "yes" if first == more else "no")
    assert checked > len(many) / 2


def test_candidates(many):
    for one in many:
        assert 1 <= len(one.candidate_sets) <= SETS
        texts = [document.text for document in one.cluster.documents]
        for result in one.candidate_sets:
            assert result.question.endswith("?")
            assert len(result.candidates) == len(result.correct) == len(set(result.candidates)) <= CANDIDATES
            assert set(result.correct) == {True, False}
            assert any(all(candidate in text for candidate in result.candidates) for text in texts)
            pairs = zip(result.candidates, result.correct, strict=True)
            assert set.intersection(*(numbers(text) for text, correct in pairs if correct))


def test_claims(many):
    """What is unknown in one cluster is stated in others: no label can be told from the wording alone."""
    labels: Counter[str] = Counter()
    wordings = defaultdict(set)
    for one in stories(seed=0, split="train", stop=500):
        assert max(Counter(claim.label for claim in one.claims).values()) <= CLAIMS
        for claim in one.claims:
            labels[claim.label] += 1
            (value,) = numbers(claim.text)
            stated = {value in numbers(sentence(one, ref)) for ref in claim.evidence}
            assert claim.text.endswith(".")
            assert stated == {"supported": {True}, "refuted": {False}, "not enough info": set()}[claim.label]
            wordings[claim.label].add(re.sub(r"\d[\d,]*", "#", re.sub(r"\b[A-Z]\w+", "N", claim.text[1:])))
    assert min(labels.values()) > 500
    unknown = wordings["not enough info"]
    assert len(unknown & (wordings["supported"] | wordings["refuted"])) / len(unknown) > 0.9
