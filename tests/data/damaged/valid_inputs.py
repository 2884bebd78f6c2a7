"""A small random valid input for every reader, and how it is read; test_files_damaged damages the inputs."""

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cdlm_lab.data.clusters import open_corpus, passed_over
from cdlm_lab.data.convert.ecb_plus import read_ecb_plus_topics
from cdlm_lab.data.convert.hotpotqa import read_rows
from cdlm_lab.data.convert.pair_csv import read_pair_csv
from cdlm_lab.data.convert.scisumm import read_scisumm
from cdlm_lab.data.files import DataError, open_bytes, read_word_vectors
from cdlm_lab.data.marked import pasted_documents, read_marked_documents
from cdlm_lab.data.pairs import read_linked_collection
from cdlm_lab.data.reading import read_records, splits_of
from cdlm_lab.data.records import PassedOver
from cdlm_lab.data.rows import rows_of
from cdlm_lab.tasks.coreference.clustering import read_predicted_topics

Files = dict[str, bytes]
Chance = random.Random
Read = Callable[[Path], tuple[object, int]]  # folder -> (what is read, number of losses that are reported)
WORDS = "Fire broke out in the old mill at noon , Müller said on 3 May".split()  # noqa: SIM905
PAGE = b"<!DOCTYPE html>\n<html><head><title>Not Found</title></head>\n<body>Not Found</body></html>\n"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


class Reader(NamedTuple):
    """`gold`: True = no file of an input is plain text, so that reading a web page in its place must fail."""

    files: Callable[[Chance], Files]
    read: Read
    gold: bool


READERS: dict[str, Reader] = {}


def of(name: str, read: Read, *, gold: bool = True) -> Callable[[Callable[[Chance], Files]], Any]:
    """Decorator that adds a function, which makes a random valid input, to READERS."""

    def _add(files: Callable[[Chance], Files]) -> Callable[[Chance], Files]:
        READERS[name] = Reader(files, read, gold)
        return files

    return _add


def plain(read: Callable[[Path], Any], name: str = "") -> Read:
    """Wrap a reader that reports no losses; it reads the file `name`, or the folder."""

    def _read(folder: Path) -> tuple[object, int]:
        content = read(folder / name if name else folder)
        return (list(content) if isinstance(content, Iterator) else content), 0

    return _read


def folder_of(path: Path, files: Files) -> Path:
    """Write files into a folder and return it."""
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def words(rng: Chance, count: int = 6) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def lines(*rows: object) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def json_lines(*records: object) -> bytes:
    return lines(*map(json.dumps, records))


def _every_split(path: Path) -> tuple[object, int]:
    """Read all splits of a corpus as a run does; errors about splits without clusters are ignored."""
    clusters = []
    for split in ("train", "validation", "test"):
        try:
            clusters += open_corpus(str(path), split=split)
        except DataError as error:
            if error.field != "split":
                raise
    if not clusters:
        raise DataError(path, "no cluster of any split", "add some")
    return clusters, len(passed_over(str(path)))


def _records(task: str, split: str) -> Read:
    """Read a split as a run does."""

    def _read(folder: Path) -> tuple[object, int]:
        counted = PassedOver()
        read = list(read_records(task, folder, split, passed_over=counted))
        return read, sum(count for count, _ in counted.counts.values())

    return _read


@of("cluster_folder", _every_split, gold=False)
def cluster_folder(rng: Chance) -> Files:
    count = rng.randint(2, 3)
    return {
        f"{cluster}/{name}.txt": lines(words(rng), words(rng))
        for cluster in ("flood", "strike")
        for name in range(count)
    }


@of("cluster_jsonl", lambda folder: _every_split(folder / "clusters.jsonl"))
def cluster_jsonl(rng: Chance) -> Files:
    documents = [words(rng), {"id": "b", "title": "Fire", "text": words(rng)}]
    splits = (rng.choice(["train", "dev", "test"]) for _ in range(3))
    records = ({"id": f"c{n}", "documents": documents, "split": split} for n, split in enumerate(splits))
    return {"clusters.jsonl": json_lines(*records)}


@of("multi_news", _every_split)
def multi_news(rng: Chance) -> Files:
    row = (f"{words(rng)} NEWLINE_CHAR {words(rng)} ||||| {words(rng)}" for _ in range(6))
    return {f"{split}.txt.src": lines(next(row), next(row)) for split in ("train", "val", "test")}


@of("allsides", _every_split)
def allsides(rng: Chance) -> Files:
    documents = [{"id": name, "title": "Fire", "text": words(rng)} for name in "ab"]
    records = ({"cluster_id": split, "split": split, "docs": documents} for split in ("train", "val"))
    return {"allsides_clusters.jsonl": json_lines(*records)}


@of("ecb_plus_topics", plain(read_ecb_plus_topics))
@of("ecb_plus", _records("coreference", "test"))
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
    rows = ("Topic,File,Sentence Number", "36,1ecb,1", "36,1ecbplus,1")
    files = {f"ECB+/36/{name}.xml": document for name in ("36_1ecb", "36_1ecbplus")}
    return {"ECBplus_coreference_sentences.csv": lines(*rows), **files}


_tags = _records("tagging", "train")


@of("docarc", _tags)
@of("docarc_passages", plain(lambda path: open_corpus(str(path), split="train")))
def docarc(rng: Chance) -> Files:
    document = lines("Orn\tB-PER", "slept\tO", "", "He\tNULL", f"{words(rng, 1)}\tNULL")
    files = {f"{split}/{name}.tsv": document for split in ("train", "dev") for name in "ab"}
    return {**files, "x.tagset": lines("B-PER\t1", "I-PER\t2", "O\t3")}


@of("litbank", _tags)
def litbank(rng: Chance) -> Files:
    rows = ("Orn\tB-PER\tO\t", "of\tI-PER\tO\t", "Dram\tI-PER\tB-GPE\t", "", f"{words(rng, 1)}\tO\tO\t")
    return {"train/book.tsv": lines(*rows)}


@of("ner_conll", _tags)
def ner_conll(rng: Chance) -> Files:
    start, sentence = "-DOCSTART- -X- -X- O", ("Orn NNP I-NP B-PER", "slept VBD I-VP O")
    return {"train.conll": lines(start, "", *sentence, "", "Dram NNP I-NP B-LOC", "", start, "", *sentence)}


@of("jnlpba_iob2", _tags)
def iob2(rng: Chance) -> Files:
    rows = ("###MEDLINE:91", "", "Orn\tB-PER", "slept\tO", "", "###MEDLINE:92", "", "Dram\tB-LOC")
    return {"train.iob2": lines(*rows)}


@of("jnlpba_standoff", _tags)
def standoff(rng: Chance) -> Files:
    names = lines("T1\tPER 0 3\tOrn", "T2\tLOC 11 15\tDram", "R1\tLives Arg1:T1 Arg2:T2\t")
    files = {f"train/{name}.txt": lines("Orn slept. Dram, too.") for name in ("91", "92")}
    return files | {f"train/{name}.ann": names for name in ("91", "92")}


@of("coreference_json", _records("coreference", "dev"))
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


@of("conll", _records("coreference", "test"))
def conll(rng: Chance) -> Files:
    rows = ("36_1\t36\t0\tPolice\t(1)", "36_1\t36\t1\tmade\t(2", "36_1\t36\t2\tarrests\t(3)|2)")
    topic = ("#begin document (36); part 000", *rows, "", *rows, "", "#end document")
    return {"test.conll": lines(*topic, *(row.replace("36", "37") for row in topic))}


@of("marked_documents", plain(lambda path: read_marked_documents(path, kind="event")), gold=False)
def marked(rng: Chance) -> Files:
    text = lines(f"A <m>fire</m> {words(rng)}.", "", "The <m>blaze at the <m>mill</m></m>.")
    return {"a.txt": text, "b.txt": text}


def _pasted(path: Path) -> object:
    with open_bytes(path) as stream:
        return pasted_documents(stream.read().decode("utf-8", "surrogateescape"), source=str(path))


@of("pasted_documents", plain(_pasted, "box.txt"), gold=False)
def pasted(rng: Chance) -> Files:
    return {"box.txt": lines("== a ==", words(rng), "", "== b ==", words(rng))}


def _questions(path: Path) -> tuple[object, int]:
    questions = list(read_rows(rows_of(path)))
    if not questions:
        raise DataError(path, "no questions", "add some")
    return questions, sum(len(question.unknown_supporting) for question in questions)


def _hotpot_records(rng: Chance) -> list[dict[str, Any]]:
    context = [["Mill", [f"{words(rng)}.", f" {words(rng)}."]], ["Rain", [words(rng)]]]
    facts = {"supporting_facts": [["Mill", 1], ["Rain", 0]], "context": context}
    record = {"question": "Who?", "answer": rng.choice(["yes", "Müller"]), "type": "bridge", "level": "hard"}
    return [{"_id": f"q{number}", **record, **facts} for number in range(2)]


@of("hotpotqa", lambda folder: _questions(folder / "dev.json"))
def hotpotqa(rng: Chance) -> Files:
    return {"dev.json": json.dumps(_hotpot_records(rng), indent=rng.choice([None, 1])).encode()}


@of("hotpotqa_of_the_hub", lambda folder: _questions(folder / "dev.jsonl"))
def hotpotqa_of_the_hub(rng: Chance) -> Files:
    questions = _hotpot_records(rng)
    for one in questions:
        one["id"] = one.pop("_id")
        for field, second in (("supporting_facts", "sent_id"), ("context", "sentences")):
            one[field] = dict(zip(("title", second), map(list, zip(*one[field], strict=True)), strict=True))
    return {"dev.jsonl": json_lines(*questions)}


ANSWERS = _records("candidates", "train")


@of("wikiqa", ANSWERS)
def wikiqa(rng: Chance) -> Files:
    head = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"
    rows = [f"Q{n // 2}\twho {n // 2}\tD1\tMill\tD1-{n}\t{words(rng)}\t{n % 2}" for n in range(6)]
    return {f"WikiQA-{split}.tsv": lines(head, *rows) for split in ("train", "dev", "test")}


@of("trecqa_tokens", ANSWERS)
def trec_tokens(rng: Chance) -> Files:
    columns = {
        "a.toks": ["who ?"] * 2 + ["why ?"] * 2,
        "b.toks": [words(rng) for _ in range(4)],
        "sim.txt": ["1", "0", "0", "1"],
        "id.txt": ["7.1", "7.1", "7.2", "7.2"],
    }
    return {f"train/{name}": lines(*rows) for name, rows in columns.items()}


@of("trecqa_xml", ANSWERS)
def trec_xml(rng: Chance) -> Files:
    rows = ["<QApairs id='7.1'>", "<question>", "Who\tswims\t?", "WP\tVBZ\t.", "</question>"]
    for label in ("positive", "negative"):
        rows += [f"<{label}>", words(rng).replace(" ", "\t"), "NN\tNN", f"</{label}>"]
    rows.append("</QApairs>")
    return {"TRAIN.xml": lines(*rows, *(row.replace("7.1", "7.2") for row in rows))}


@of("asnq", ANSWERS)
def asnq(rng: Chance) -> Files:
    return {"train.tsv": lines(*(f"who wrote {n // 2}\t{words(rng)}\t{n % 4 + 1}" for n in range(8)))}


def _claims(path: Path) -> object:
    sets = splits_of("claims", path)
    return [list(read_records("claims", path, one)) for one in sets if one not in ("train", "validation")]


CLAIMS = plain(_claims)


@of("fever", CLAIMS)
def fever(rng: Chance) -> Files:
    claim = {"claim": words(rng), "label": "SUPPORTS", "evidence": [["Mill", 0, words(rng), 0.9]]}
    records = json_lines(*({"id": number, **claim} for number in range(3)))
    return {"bert_dev.json": records, "bert_test.json": records}


@of("fm2", CLAIMS)
def fm2(rng: Chance) -> Files:
    evidence = [{"section_header": "Plot", "text": words(rng)}]
    claim = {
        "text": words(rng),
        "label": "REFUTES",
        "gold_evidence": evidence,
        "retrieved_evidence": evidence,
    }
    records = json_lines(*({"id": name, "wikipedia_page": f"P{name}", **claim} for name in "123"))
    return {"dev.jsonl": records, "test.jsonl": records}


@of("fever_symmetric", CLAIMS)
def symmetric(rng: Chance) -> Files:
    claim = {"claim": words(rng), "evidence_sentence": words(rng), "label": "REFUTES"}
    return {"fever_symmetric_test.jsonl": json_lines(*({"id": name, **claim} for name in "123"))}


def _pairs(folder: Path) -> object:
    positions = folder / "positions.csv"
    return [list(read_pair_csv(folder / "pairs.csv", positions=one)) for one in (None, positions)]


@of("pair_csv", plain(_pairs))
def pair_csv(rng: Chance) -> Files:
    rows = [f'{n % 2},"{words(rng)} \x01. He said ""no"".\n{words(rng)}.","{words(rng)}."' for n in range(4)]
    return {"pairs.csv": lines(*rows), "positions.csv": lines("1,0", "3,0,1")}


@of("linked_collection", plain(read_linked_collection))
def linked(rng: Chance) -> Files:
    text = {"id": "a", "text": f"{words(rng)}. {words(rng)}."}
    links = {"first": "b", "second": "a", "sentences": [1]}, {"first": "a", "second": "b"}
    documents = json_lines(text, {"id": "b", "sentences": [words(rng)] * 2})
    return {"documents.jsonl": documents, "links.jsonl": json_lines(*links)}


def _vectors(path: Path) -> object:
    names, values = read_word_vectors(path)
    return names, values.tolist()


@of("word_vectors", plain(_vectors, "v.txt"))
def vectors(rng: Chance) -> Files:
    head = rng.choice([[], ["3 4"]])
    rows = (f"{word} 0.5 -1.25e-3 2 {rng.random():.3f}" for word in ("the", "of", "–"))
    return {"v.txt": lines(*head, *rows)}


@of("predicted_topics", plain(read_predicted_topics, "topics.json"))
def topics(rng: Chance) -> Files:
    return {"topics.json": json.dumps([["1_1ecb", "1_2ecb"], ["2_1ecb"]]).encode()}


def _scisumm(folder: Path) -> tuple[object, int]:
    data = read_scisumm(folder)
    lost = len(data.unplaced) + len(data.passed_over) + sum(data.replaced.values())
    return (dict(data.papers), data.links), lost


def paper(*sentences: str) -> bytes:
    rows = [f'<S sid ="{n}" ssid = "1">{sentence}</S>' for n, sentence in enumerate(sentences)]
    return lines("<PAPER>", rows[0], '<SECTION title="x" number = "1">', *rows[1:], "</SECTION></PAPER>")


@of("scisumm", _scisumm)
@of("scisumm_corpus", _every_split, gold=False)
def scisumm(rng: Chance) -> Files:
    row = (
        "Citance Number: 1 | Reference Article:  R00-0001.xml | Citing Article:  C01-0001.xml | "
        "Citation Offset:  ['1'] | Citation Text:  x | Reference Offset:  ['1'] | Annotator:  N |"
    )
    head = "Citance Number,Citing Article,Citation Offset,Citation Text,Citation Text Clean,Reference Offset"
    task, net = "cl_scisumm_2018", "scisummnet_2019"
    citing = paper("Parsing", "We parse as they did.", words(rng))
    files = {"scisummnet_citation_pairs.tsv": lines("citing_id\tcited_id", "N00-0001\tN00-0002")}
    for folder, name in (("Training-Set-2018/R00-0001", "R00-0001"), ("Test-Set-2018/T00-0001", "T00-0001")):
        files[f"{task}/{folder}/Reference_XML/{name}.xml"] = paper(f"Of {name}", f"Of {words(rng)}")
        files[f"{task}/{folder}/Citance_XML/C01-0001.xml"] = citing
    files[f"{task}/Training-Set-2018/R00-0001/annotation/R00-0001.ann.txt"] = lines(row)
    answer = '1,C01-0001,0,x,"We parse as they did",1'
    files[f"{task}/Test-Set-2018/T00-0001/annotation/T00-0001.csv"] = lines(head, answer)
    quoted = [{"citing_paper_id": "N00-0001", "raw_text": "We follow them as all do."}]
    for name in ("N00-0001", "N00-0002"):
        files[f"{net}/{name}/Reference_XML/{name}.xml"] = paper(f"On {name}", "We follow them as all do.")
        files[f"{net}/{name}/citing_sentences.json"] = json.dumps(quoted).encode()
    return files


@of("scisumm_archives", _scisumm)
def packed_scisumm(rng: Chance) -> Files:
    """Make the input of `scisumm`, with both collections as tar archives."""
    files = scisumm(rng)
    packed = {"scisummnet_citation_pairs.tsv": files.pop("scisummnet_citation_pairs.tsv")}
    for collection in ("cl_scisumm_2018", "scisummnet_2019"):
        buffer, form = io.BytesIO(), rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
        with tarfile.open(fileobj=buffer, mode="w:xz", format=form) as tar:
            for name in filter(lambda name: name.startswith(collection), files):
                member = tarfile.TarInfo(name)
                member.size = len(files[name])
                tar.addfile(member, io.BytesIO(files[name]))
        packed[f"{collection}.tar.xz"] = buffer.getvalue()
    return packed
