"""Small corpora in files, one for each experiment, of storyworld's texts; another `seed`, others."""

import csv
import json
from pathlib import Path

from cdlm_lab.data.convert.hotpotqa import hotpot_record
from cdlm_lab.data.storyworld.stories import digest
from cdlm_lab.data.storyworld.task_sets import (
    read_storyworld_candidates,
    read_storyworld_claims,
    read_storyworld_pairs,
    read_storyworld_questions,
    read_storyworld_tags,
    read_storyworld_topics,
)

SPLITS, STORIES = ("train", "dev", "test"), 6
LABELS = {"supported": "SUPPORTS", "refuted": "REFUTES", "not enough info": "NOT ENOUGH INFO"}


def clusters(folder: Path, seed: int) -> None:
    """Clusters of one format: paragraphs for notebook 08, of which each cluster holds three documents."""
    rows = []
    for split in ("train", "dev", "test"):
        part = "validation" if split == "dev" else split
        for index in range(0, 3 * STORIES, 3):
            texts = [digest(seed=seed, split=part, index=index + place).text for place in range(3)]
            rows.append({"id": f"{split}{index}", "split": split, "documents": texts})
    write_lines(folder / "clusters.jsonl", rows)


def topics(folder: Path, seed: int) -> None:
    """Coreference as in the released JSON."""
    for split in SPLITS:
        read = list(read_storyworld_topics(split, STORIES, seed=seed))
        documents = {}
        mentions: dict[str, list[dict]] = {"events": [], "entities": []}
        for number, topic in enumerate(read, 1):
            for place, one in enumerate(topic.documents, 1):
                name = f"{number}_{place}ecb.xml"
                documents[name] = [
                    [sentence, token, one.tokens[token], True]
                    for sentence, (start, end) in enumerate(one.sentences)
                    for token in range(start, end)
                ]
                for mention in one.mentions:
                    record = {"topic": str(number), "doc_id": name, "m_id": mention.id}
                    record |= {"tokens_ids": list(range(*mention.tokens)), "cluster_id": mention.cluster}
                    mentions["events" if mention.kind == "event" else "entities"].append(record)
        (folder / f"{split}.json").write_text(json.dumps(documents))
        for kind, of_kind in mentions.items():
            (folder / f"{split}_{kind}.json").write_text(json.dumps(of_kind))


def pairs(folder: Path, seed: int) -> None:
    """Pairs of documents as the benchmark has them, the true sentences marked."""
    for split in SPLITS:
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            for pair in read_storyworld_pairs(split, STORIES, seed=seed):
                first = list(pair.first.sentences)
                for number in pair.aligned or ():
                    first[number] = f"{first[number][:-1]} \x01{first[number][-1]}"
                texts = ("\n".join(sentences) for sentences in (first, pair.second.sentences))
                csv.writer(file).writerow([int(pair.related), *texts])


def questions(folder: Path, seed: int) -> None:
    """Questions in HotpotQA's format."""
    for split in SPLITS:
        read = read_storyworld_questions(split, STORIES, seed=seed, sentences=2, paragraphs=3)
        (folder / f"{split}.json").write_text(json.dumps(list(map(hotpot_record, read))))


def tags(folder: Path, seed: int) -> None:
    """Tags as in CoNLL, of the labelled sentences alone."""
    for split in SPLITS:
        lines = []
        for document in read_storyworld_tags(split, STORIES, seed=seed):
            lines += ["-DOCSTART- O", ""]
            for sentence in (one for one in document.sentences if one.tags is not None):
                lines += [f"{word} {tag}" for word, tag in zip(sentence.words, sentence.tags, strict=True)]
                lines.append("")
        (folder / f"{split}.conll").write_text("\n".join(lines), encoding="utf-8")


def answers(folder: Path, seed: int) -> None:
    """Questions with candidates as in WikiQA."""
    head = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"
    for split in SPLITS:
        rows = [
            f"Q{number}\t{one.question}\tD{number}\tReport\tD{number}-{place}\t{text}\t{int(right)}"
            for number, one in enumerate(read_storyworld_candidates(split, STORIES, seed=seed))
            for place, (text, right) in enumerate(zip(one.candidates, one.correct, strict=True))
        ]
        (folder / f"WikiQA-{split}.tsv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")


def claims(folder: Path, seed: int) -> None:
    """Claims as in FEVER, each with two sentences of evidence."""
    for split in SPLITS:
        rows = []
        for one in read_storyworld_claims(split, STORIES, evidence=2, seed=seed):
            evidence = [[one.group, number, text, 1.0] for number, text in enumerate(one.evidence)]
            row = {"id": len(rows), "claim": one.text, "label": LABELS[one.label], "evidence": evidence}
            rows.append(row)
        write_lines(folder / f"bert_{split}.json", rows)


def write_lines(file: Path, records: list[dict]) -> None:
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
