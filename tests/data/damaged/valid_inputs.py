"""A small valid input of every reader, drawn by chance, and how it is read; test_files_damaged damages it."""

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdlm_lab.clustering import read_predicted_topics
from cdlm_lab.data.candidates import read_candidate_sets
from cdlm_lab.data.claims import claim_sets, read_claims
from cdlm_lab.data.clusters import open_corpus, passed_over
from cdlm_lab.data.coreference_files import read_conll_corpus, read_coreference_json
from cdlm_lab.data.document_links import read_linked_collection
from cdlm_lab.data.document_pairs import read_pair_csv
from cdlm_lab.data.ecb_plus import read_ecb_plus, read_ecb_plus_topics
from cdlm_lab.data.files import DataError, open_bytes, read_word_vectors
from cdlm_lab.data.questions import read_hotpotqa
from cdlm_lab.data.records import PassedOver
from cdlm_lab.data.scisumm import read_scisumm
from cdlm_lab.data.tagged import TagReading, read_tagged_split
from cdlm_lab.data.typed_documents import pasted_documents, read_marked_documents

Files = dict[str, bytes]
Chance = random.Random
WORDS = (
    "Fire", "broke", "out", "in", "the", "old", "mill", "at", "noon", ",", "Müller", "said", "on", "3", "May",
)  # fmt: skip


def words(rng: Chance, count: int = 6) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def lines(*rows: object) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def json_lines(*records: object) -> bytes:
    return lines(*(json.dumps(record) for record in records))


@dataclass(frozen=True, kw_only=True)
class Reader:
    """`files`: a valid input. `read`: what is read of a folder, and how many losses are told of it. `gold`:
    no file of it is plain text, so that a page in its place cannot be read."""

    files: Callable[[Chance], Files]
    read: Callable[[Path], tuple[object, int]]
    gold: bool = True


def plain(read: Callable[[Path], Any], name: str = "") -> Callable[[Path], tuple[object, int]]:
    """A reader that tells no losses; of the file `name`, or of the folder."""

    def _read(folder: Path) -> tuple[object, int]:
        found = read(folder / name if name else folder)
        return (list(found) if isinstance(found, Iterator) else found), 0

    return _read


# Valid inputs.


def cluster_folder(rng: Chance) -> Files:
    return {
        f"{cluster}/{name}.txt": lines(words(rng), words(rng))
        for cluster in ("flood", "strike")
        for name in range(rng.randint(2, 3))
    }


def _every_split(folder: Path) -> tuple[object, int]:
    """As a run reads a corpus; a split that has no cluster says so."""
    found = []
    for split in ("train", "validation", "test"):
        try:
            found += open_corpus(str(folder), split=split)
        except DataError as error:
            if error.field != "split":
                raise
    if not found:
        raise DataError(folder, "no cluster of any split", "add some")
    return found, len(passed_over(str(folder)))


def cluster_jsonl(rng: Chance) -> Files:
    given = {"id": "b", "title": "Fire", "text": words(rng)}
    records = [
        {"id": f"c{number}", "documents": [words(rng), given], "split": rng.choice(["train", "dev", "test"])}
        for number in range(3)
    ]
    return {"clusters.jsonl": json_lines(*records)}


def multi_news(rng: Chance) -> Files:
    row = (f"{words(rng)} NEWLINE_CHAR {words(rng)} ||||| {words(rng)}" for _ in range(6))
    return {f"{split}.txt.src": lines(next(row), next(row)) for split in ("train", "val", "test")}


def allsides(rng: Chance) -> Files:
    documents = [{"id": name, "title": "Fire", "text": words(rng)} for name in "ab"]
    records = [
        {"cluster_id": f"c{n}", "split": split, "docs": documents} for n, split in enumerate(("train", "val"))
    ]
    return {"allsides_clusters.jsonl": json_lines(*records)}


def neus(rng: Chance) -> Files:
    document = f"TITLE=> {words(rng, 2)} ARTICLE=> {words(rng)}"
    return {"neus_train.source": lines(f"{document} [SEP] {document}", document)}


def ecb_plus(rng: Chance) -> Files:
    tokens = [
        f'<token t_id="{1 + 4 * sentence + place}" sentence="{sentence}" number="{place}">{word}</token>'
        for sentence in range(2)
        for place, word in enumerate(words(rng, 4).split())
    ]
    annotation = (
        '<Markables><ACTION_OCCURRENCE m_id="1" ><token_anchor t_id="5"/><token_anchor t_id="6"/>'
        "</ACTION_OCCURRENCE>"
        '<LOC_GEO m_id="2" ><token_anchor t_id="8"/></LOC_GEO>'
        '<ACTION_STATE m_id="3" RELATED_TO="" TAG_DESCRIPTOR="x" instance_id="ACT1"/></Markables>'
        '<Relations><CROSS_DOC_COREF r_id="4" ><source m_id="1" /><target m_id="3" /></CROSS_DOC_COREF>'
        "</Relations>"
    )
    document = lines('<?xml version="1.0"?>', '<Document doc_name="x">', *tokens, annotation, "</Document>")
    names = ("36_1ecb", "36_1ecbplus")
    rows = [f"36,{name[3:]},1" for name in names]
    return {
        "ECBplus_coreference_sentences.csv": lines("Topic,File,Sentence Number", *rows),
        **{f"ECB+/36/{name}.xml": document for name in names},
    }


def docarc(rng: Chance) -> Files:
    document = lines("Orn\tB-PER", "slept\tO", "", "He\tNULL", f"{words(rng, 1)}\tNULL")
    files = {f"{split}/{name}.tsv": document for split in ("train", "dev") for name in "ab"}
    return {**files, "x.tagset": lines("B-PER\t1", "I-PER\t2", "O\t3")}


def tags(folder: Path) -> tuple[object, int]:
    reading = TagReading()
    return list(read_tagged_split(folder, "train", reading=reading)), reading.mended


def litbank(rng: Chance) -> Files:
    return {
        "train/book.tsv": lines(
            "Orn\tB-PER\tO\t", "of\tI-PER\tO\t", "Dram\tI-PER\tB-GPE\t", "", f"{words(rng, 1)}\tO\tO\t"
        )
    }


def ner_conll(rng: Chance) -> Files:
    start, sentence = "-DOCSTART- -X- -X- O", ("Orn NNP I-NP B-PER", "slept VBD I-VP O")
    return {"train.conll": lines(start, "", *sentence, "", "Dram NNP I-NP B-LOC", "", start, "", *sentence)}


def iob2(rng: Chance) -> Files:
    return {
        "train.iob2": lines(
            "###MEDLINE:91", "", "Orn\tB-PER", "slept\tO", "", "###MEDLINE:92", "", "Dram\tB-LOC"
        )
    }


def standoff(rng: Chance) -> Files:
    files = {}
    for name in ("91", "92"):
        files[f"train/{name}.txt"] = lines("Orn slept. Dram, too.")
        files[f"train/{name}.ann"] = lines(
            "T1\tPER 0 3\tOrn", "T2\tLOC 11 15\tDram", "R1\tLives Arg1:T1 Arg2:T2\t"
        )
    return files


def coreference_json(rng: Chance) -> Files:
    names = ("36_1ecb.xml", "36_2ecb.xml")
    tokens = [[place // 3, place + 1, word, True] for place, word in enumerate(words(rng, 6).split())]
    mention = {"topic": "36", "tokens_ids": [4, 5], "cluster_id": 7}
    mentions = [{**mention, "doc_id": name, "m_id": str(number)} for number, name in enumerate(names)]
    entities = [{**mention, "doc_id": names[0], "m_id": "9", "cluster_id": "x"}]
    return {
        "dev.json": json.dumps(dict.fromkeys(names, tokens), indent=rng.choice([None, 1])).encode(),
        "dev_events.json": json.dumps(mentions, indent=rng.choice([None, 1])).encode(),
        "dev_entities.json": json.dumps(entities).encode(),
    }


def conll(rng: Chance) -> Files:
    rows = ("36_1\t36\t0\tPolice\t(1)", "36_1\t36\t1\tmade\t(2", "36_1\t36\t2\tarrests\t(3)|2)")
    topic = ("#begin document (36); part 000", *rows, "", *rows, "", "#end document")
    other = [row.replace("36", "37") for row in topic]
    return {"key.conll": lines(*topic, *other)}


def _conll_corpus(folder: Path) -> tuple[object, int]:
    counted = PassedOver()
    files = [folder / "key.conll"]
    found = read_conll_corpus(files, kind="event", name="all", passed_over=counted)
    return found, sum(count for count, _ in counted.counts.values())


def _json_of_others(folder: Path) -> tuple[object, int]:
    counted = PassedOver()
    found = list(read_coreference_json(folder, "dev", passed_over=counted))
    return found, sum(count for count, _ in counted.counts.values())


def marked(rng: Chance) -> Files:
    return {
        f"{name}.txt": lines(f"A <m>fire</m> {words(rng)}.", "", "The <m>blaze at the <m>mill</m></m>.")
        for name in "ab"
    }


def pasted(rng: Chance) -> Files:
    return {"box.txt": lines("== a ==", words(rng), "", "== b ==", words(rng))}


def _pasted(path: Path) -> object:
    with open_bytes(path) as stream:
        return pasted_documents(stream.read().decode("utf-8", "surrogateescape"), source=str(path))


def _questions(rng: Chance) -> list[dict[str, Any]]:
    context = [["Mill", [f"{words(rng)}.", f" {words(rng)}."]], ["Rain", [words(rng)]]]
    return [
        {
            "_id": f"q{number}", "question": "Who?", "answer": rng.choice(["yes", "Müller"]),
            "type": "bridge", "level": "hard", "supporting_facts": [["Mill", 1], ["Rain", 0]],
            "context": context,
        }
        for number in range(2)
    ]  # fmt: skip


def hotpotqa(rng: Chance) -> Files:
    return {"dev.json": json.dumps(_questions(rng), indent=rng.choice([None, 1])).encode()}


def hotpotqa_of_the_hub(rng: Chance) -> Files:
    questions = _questions(rng)
    for one in questions:
        one["id"] = one.pop("_id")
        for field, second in (("supporting_facts", "sent_id"), ("context", "sentences")):
            one[field] = dict(zip(("title", second), map(list, zip(*one[field], strict=True)), strict=True))
    return {"dev.jsonl": json_lines(*questions)}


def _hotpotqa(path: Path) -> tuple[object, int]:
    found = read_hotpotqa(path)
    return found, sum(len(question.unknown_supporting) for question in found)


WIKIQA = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"


def wikiqa(rng: Chance) -> Files:
    rows = [f"Q{n // 2}\twho {n // 2}\tD1\tMill\tD1-{n}\t{words(rng)}\t{n % 2}" for n in range(6)]
    return {f"WikiQA-{split}.tsv": lines(WIKIQA, *rows) for split in ("train", "dev", "test")}


def trec_tokens(rng: Chance) -> Files:
    columns = {
        "a.toks": ["who ?"] * 2 + ["why ?"] * 2,
        "b.toks": [words(rng) for _ in range(4)],
        "sim.txt": ["1", "0", "0", "1"],
        "id.txt": ["7.1", "7.1", "7.2", "7.2"],
    }
    return {f"train/{name}": lines(*rows) for name, rows in columns.items()}


def trec_xml(rng: Chance) -> Files:
    rows = ["<QApairs id='7.1'>", "<question>", "Who\tswims\t?", "WP\tVBZ\t.", "</question>"]
    for label in ("positive", "negative"):
        rows += [f"<{label}>", words(rng).replace(" ", "\t"), "NN\tNN", f"</{label}>"]
    rows.append("</QApairs>")
    return {"TRAIN.xml": lines(*rows, *(row.replace("7.1", "7.2") for row in rows))}


def asnq(rng: Chance) -> Files:
    return {"train.tsv": lines(*(f"who wrote {n // 2}\t{words(rng)}\t{n % 4 + 1}" for n in range(8)))}


def answers(folder: Path) -> object:
    return read_candidate_sets(folder, "train")


def fever(rng: Chance) -> Files:
    records = [
        {"id": n, "claim": words(rng), "label": "SUPPORTS", "evidence": [[f"Mill_{n}", 0, words(rng), 0.9]]}
        for n in range(3)
    ]
    return {f"bert_{split}.json": json_lines(*records) for split in ("dev", "test")}


def fm2(rng: Chance) -> Files:
    found = [{"section_header": "Plot", "text": words(rng)}]
    records = [
        {
            "id": f"{n}", "text": words(rng), "label": "REFUTES", "wikipedia_page": f"P{n}",
            "gold_evidence": found, "retrieved_evidence": found,
        }
        for n in range(3)
    ]  # fmt: skip
    return {f"{split}.jsonl": json_lines(*records) for split in ("dev", "test")}


def symmetric(rng: Chance) -> Files:
    records = [
        {"id": f"{n}", "claim": words(rng), "evidence_sentence": words(rng), "label": "REFUTES"}
        for n in range(3)
    ]
    return {"fever_symmetric_test.jsonl": json_lines(*records)}


def claims(folder: Path) -> object:
    return [read_claims(folder, split) for split in claim_sets(folder) if split != "train"]


def pair_csv(rng: Chance) -> Files:
    rows = [f'{n % 2},"{words(rng)} \x01. He said ""no"".\n{words(rng)}.","{words(rng)}."' for n in range(4)]
    return {"pairs.csv": lines(*rows), "positions.csv": lines("1,0", "3,0,1")}


def pairs(folder: Path) -> object:
    given = folder / "positions.csv"
    return [list(read_pair_csv(folder / "pairs.csv", positions=one)) for one in (None, given)]


def linked(rng: Chance) -> Files:
    documents = [
        {"id": "a", "text": f"{words(rng)}. {words(rng)}."},
        {"id": "b", "sentences": [words(rng)] * 2},
    ]
    links = [{"first": "b", "second": "a", "sentences": [1]}, {"first": "a", "second": "b"}]
    return {"documents.jsonl": json_lines(*documents), "links.jsonl": json_lines(*links)}


def vectors(rng: Chance) -> Files:
    head = rng.choice([[], ["3 4"]])
    return {
        "v.txt": lines(*head, *(f"{word} 0.5 -1.25e-3 2 {rng.random():.3f}" for word in ("the", "of", "–")))
    }


def _vectors(path: Path) -> object:
    found, values = read_word_vectors(path)
    return found, values.tolist()


def topics(rng: Chance) -> Files:
    return {"topics.json": json.dumps([["1_1ecb", "1_2ecb"], ["2_1ecb"]]).encode()}


def paper(*sentences: str) -> bytes:
    rows = [f'<S sid ="{n}" ssid = "1">{sentence}</S>' for n, sentence in enumerate(sentences)]
    return lines("<PAPER>", rows[0], '<SECTION title="x" number = "1">', *rows[1:], "</SECTION></PAPER>")


def scisumm(rng: Chance) -> Files:
    row = (
        "Citance Number: 1 | Reference Article:  R00-0001.xml | Citing Article:  C01-0001.xml | "
        "Citation Offset:  ['1'] | Citation Text:  x | Reference Offset:  ['1'] | Annotator:  N |"
    )
    head = "Citance Number,Citing Article,Citation Offset,Citation Text,Citation Text Clean,Reference Offset"
    task, net = "cl_scisumm_2018", "scisummnet_2019"
    citing = paper("Parsing", "We parse as they did.", words(rng))
    files = {}
    for folder, name in (("Training-Set-2018/R00-0001", "R00-0001"), ("Test-Set-2018/T00-0001", "T00-0001")):
        files[f"{task}/{folder}/Reference_XML/{name}.xml"] = paper(f"Of {name}", f"Of {words(rng)}")
        files[f"{task}/{folder}/Citance_XML/C01-0001.xml"] = citing
    files[f"{task}/Training-Set-2018/R00-0001/annotation/R00-0001.ann.txt"] = lines(row)
    files[f"{task}/Test-Set-2018/T00-0001/annotation/T00-0001.csv"] = lines(
        head, '1,C01-0001,0,x,"We parse as they did",1'
    )
    for name in ("N00-0001", "N00-0002"):
        said = [{"citing_paper_id": "N00-0001", "raw_text": "We follow them as all do."}]
        files[f"{net}/{name}/Reference_XML/{name}.xml"] = paper(f"On {name}", "We follow them as all do.")
        files[f"{net}/{name}/citing_sentences.json"] = json.dumps(said).encode()
    files["scisummnet_citation_pairs.tsv"] = lines("citing_id\tcited_id", "N00-0001\tN00-0002")
    return files


def packed_scisumm(rng: Chance) -> Files:
    """The same in archives, of which one has a name, a link or a size that it should not have."""
    files = scisumm(rng)
    made = {"scisummnet_citation_pairs.tsv": files.pop("scisummnet_citation_pairs.tsv")}
    for collection in ("cl_scisumm_2018", "scisummnet_2019"):
        buffer = io.BytesIO()
        with tarfile.open(
            fileobj=buffer, mode="w:xz", format=rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
        ) as tar:
            for name, data in files.items():
                if name.startswith(collection):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        made[f"{collection}.tar.xz"] = buffer.getvalue()
    return made


def _scisumm(folder: Path) -> tuple[object, int]:
    found = read_scisumm(folder)
    lost = len(found.unplaced) + len(found.passed_over) + sum(found.replaced.values())
    return (dict(found.papers), found.links), lost


READERS: Mapping[str, Reader] = {
    "cluster_folder": Reader(files=cluster_folder, read=_every_split, gold=False),
    "cluster_jsonl": Reader(
        files=cluster_jsonl, read=plain(lambda path: _every_split(path)[0], "clusters.jsonl")
    ),
    "multi_news": Reader(files=multi_news, read=_every_split),
    "allsides": Reader(files=allsides, read=_every_split),
    "neus": Reader(files=neus, read=_every_split),
    "ecb_plus_topics": Reader(files=ecb_plus, read=plain(read_ecb_plus_topics)),
    "ecb_plus": Reader(files=ecb_plus, read=plain(lambda folder: read_ecb_plus(folder, "test"))),
    "docarc": Reader(files=docarc, read=tags),
    "docarc_passages": Reader(
        files=docarc, read=plain(lambda path: list(open_corpus(str(path), split="train")))
    ),
    "litbank": Reader(files=litbank, read=tags),
    "ner_conll": Reader(files=ner_conll, read=tags),
    "jnlpba_iob2": Reader(files=iob2, read=tags),
    "jnlpba_standoff": Reader(files=standoff, read=tags),
    "coreference_json": Reader(
        files=coreference_json, read=plain(lambda path: read_coreference_json(path, "dev"))
    ),
    "coreference_json_of_others": Reader(files=coreference_json, read=_json_of_others),
    "conll": Reader(files=conll, read=_conll_corpus),
    "marked_documents": Reader(
        files=marked, read=plain(lambda p: read_marked_documents(p, kind="event")), gold=False
    ),
    "pasted_documents": Reader(files=pasted, read=plain(_pasted, "box.txt"), gold=False),
    "hotpotqa": Reader(files=hotpotqa, read=lambda folder: _hotpotqa(folder / "dev.json")),
    "hotpotqa_of_the_hub": Reader(
        files=hotpotqa_of_the_hub, read=lambda folder: _hotpotqa(folder / "dev.jsonl")
    ),
    "wikiqa": Reader(files=wikiqa, read=plain(answers)),
    "trecqa_tokens": Reader(files=trec_tokens, read=plain(answers)),
    "trecqa_xml": Reader(files=trec_xml, read=plain(answers)),
    "asnq": Reader(files=asnq, read=plain(answers)),
    "fever": Reader(files=fever, read=plain(claims)),
    "fm2": Reader(files=fm2, read=plain(claims)),
    "fever_symmetric": Reader(files=symmetric, read=plain(claims)),
    "pair_csv": Reader(files=pair_csv, read=plain(pairs)),
    "linked_collection": Reader(files=linked, read=plain(read_linked_collection)),
    "word_vectors": Reader(files=vectors, read=plain(_vectors, "v.txt")),
    "predicted_topics": Reader(files=topics, read=plain(read_predicted_topics, "topics.json")),
    "scisumm": Reader(files=scisumm, read=_scisumm),
    "scisumm_archives": Reader(files=packed_scisumm, read=_scisumm),
    "scisumm_corpus": Reader(files=scisumm, read=_every_split, gold=False),
}
