"""The topics of a coreference corpus: storyworld, one's own documents, or any format of published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from cdlm_lab.data.convert.conll import Chains
from cdlm_lab.data.coreference import topics_of, without_repeats
from cdlm_lab.data.files import DataError
from cdlm_lab.data.reading import format_of, open_records, read_records
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Kind, PassedOver, Topic
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.data.tags import spans_of
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.own import by_item, lines_of

CoreferenceSplit = Literal["train", "dev", "test"]


def read_coreference_split(
    corpus: str,
    split: CoreferenceSplit,
    *,
    stories: int,
    kind: Kind,
    chosen: Mapping[str, Sequence[str]],
    passed_over: PassedOver,
    chains: Chains = "auto",
) -> list[Topic]:
    """The topics of one split.

    Args:
        chosen: names of the topics of `dev` and `test` to use, [] = all. A corpus that is not split is
            divided by these names if both are given, and the other topics are train; else by a hash.
        passed_over: counts the items that cannot be used.
        chains: of CoNLL files, within what equal names mean one chain; other corpora take only "auto".
    """
    form = {"kind": kind, "passed_over": passed_over, "chains": chains}
    if corpus != "storyworld" and any(chosen.values()):
        topics = _all_topics(corpus, **form)
        if topics:
            return _divided(corpus, topics, chosen, split)
    topics = read_corpus(corpus, split, stories=stories, **form)
    if wanted := chosen.get(split):
        _check_names(f"{split}_topics", wanted, topics)
        return [topic for topic in topics if topic.id in wanted]
    return topics


def read_corpus(
    corpus: str,
    split: CoreferenceSplit,
    *,
    stories: int,
    kind: Kind | None = None,
    passed_over: PassedOver | None = None,
    chains: Chains = "auto",
) -> list[Topic]:
    """All topics of a split of storyworld (`stories` of them) or of a corpus that `read_records` reads.
    `kind`: None = both; `passed_over`: counts what cannot be used, None = it is not counted; `chains`: of
    CoNLL files, within what equal names mean one chain."""
    counted = PassedOver() if passed_over is None else passed_over
    options = _options(corpus, kind, chains)
    if corpus == "storyworld":
        return list(read_storyworld_topics(split, stories))
    records = read_records("coreference", corpus, split, passed_over=counted, **options)
    return without_repeats(topics_of(records, corpus), counted)


def _options(corpus: str, kind: Kind | None, chains: Chains) -> dict[str, Any]:
    if chains == "auto":
        return {"kind": kind}
    if corpus == "storyworld" or format_of("coreference", corpus) != "conll":
        raise ParameterError(f"chains is {chains!r}, but {corpus} names its chains itself; write 'auto'")
    return {"kind": kind, "chains": chains}


def _all_topics(corpus: str, *, kind: Kind, passed_over: PassedOver, chains: Chains) -> list[Topic]:
    """All topics of a corpus that is not split; [] of one that is."""
    opened = open_records("coreference", corpus, **_options(corpus, kind, chains))
    if list(opened.splits) != [""]:
        return []
    if "" in opened.passed_over:
        passed_over.include(opened.passed_over[""])
    return without_repeats(topics_of(opened.splits[""](), corpus), passed_over)


def _divided(
    corpus: str, topics: Sequence[Topic], chosen: Mapping[str, Sequence[str]], split: str
) -> list[Topic]:
    """The topics of a split, for a corpus that is not split into files."""
    for name, wanted in chosen.items():
        if not wanted:
            raise ParameterError(
                f"{corpus} is not split into train, dev and test: name some of its {len(topics)} topics as "
                f"{name}_topics too, separated by spaces ({_some(topics)})"
            )
        _check_names(f"{name}_topics", wanted, topics)
    if both := set(chosen["dev"]) & set(chosen["test"]):
        raise ParameterError(f"{min(both)} is in dev_topics and in test_topics; leave it in one of them")
    held_out = {*chosen["dev"], *chosen["test"]}
    if held_out >= {topic.id for topic in topics}:
        raise ParameterError(
            f"dev_topics and test_topics take all topics of {corpus}; leave some to learn from"
        )
    if split in chosen:
        return [topic for topic in topics if topic.id in chosen[split]]
    return [topic for topic in topics if topic.id not in held_out]


def with_found_mentions(topics: Sequence[Topic], run: str, split: str, kind: Kind) -> list[Topic]:
    """Topics whose mentions of a kind are those that a run of notebook 07 found in the validated sentences. A
    mention in the place of a gold one is in its cluster, any other in one of its own. Raises ParameterError
    if the run has no tags of the split, DataError if they are of other documents."""
    file, tagged = (
        Path(run, f"tags-{split}.jsonl"),
        [one for t in topics for one in t.documents if one.validated],
    )
    if not file.is_file():
        raise ParameterError(
            f"mentions_run is {run!r}, where {file.name} is missing; let that run finish first"
        )
    names = {document.id for document in tagged}
    lines = [(number, each) for number, each in lines_of(file) if each.get("item") in names]
    found = by_item(file, lines, list(names), field="tags")
    made = {one.id: _with_tags(one, *found[one.id], file=file, kind=kind) for one in tagged}
    return [
        replace(topic, documents=tuple(made.get(one.id, one) for one in topic.documents)) for topic in topics
    ]


def _with_tags(
    document: CoreferenceDocument, line: int, tags: Sequence[Sequence[str]], *, file: Path, kind: Kind
) -> CoreferenceDocument:
    words = [document.sentences[number][1] - document.sentences[number][0] for number in document.validated]
    if [len(of_sentence) for of_sentence in tags] != words:
        what = f"document {document.id} has other validated sentences"
        raise DataError(file, what, "give a run of notebook 07 on the same corpus", line=line, field="tags")
    gold = {one.tokens: one.cluster for one in document.mentions if one.kind == kind}
    mentions = []
    for number, of_sentence in zip(document.validated, tags, strict=True):
        begin = document.sentences[number][0]
        for one in (span for span in spans_of(of_sentence) if span.label == kind):
            span, name = (begin + one.first, begin + one.stop), f"{document.id}:{kind} {begin + one.first}"
            place = {"document": document.id, "tokens": span, "sentence": number}
            mentions.append(CoreferenceMention(id=name, kind=kind, cluster=gold.get(span, name), **place))
    return replace(document, mentions=tuple(mentions))


def _check_names(parameter: str, wanted: Sequence[str], topics: Sequence[Topic]) -> None:
    known = {topic.id for topic in topics}
    if missing := [name for name in wanted if name not in known]:
        raise ParameterError(f"{parameter} names {missing[0]}, but the topics are {_some(topics)}")


def _some(topics: Sequence[Topic], most: int = 50) -> str:
    return ", ".join(topic.id for topic in topics[:most]) + (", ..." if len(topics) > most else "")
