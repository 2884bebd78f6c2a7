"""ECB+ by hand: validated mentions, plain text of topics, hostile XML; counts of the real corpus."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cdlm_lab.data.convert.ecb_plus import (
    CSV_NAME,
    TOPICS,
    coreference_files,
    ecb_plus_files,
    read_ecb_plus,
    read_ecb_plus_topics,
)
from cdlm_lab.data.coreference import topics_of
from cdlm_lab.data.records import PassedOver, gold_clusters, mentions_of
from cdlm_lab.data.splits import SPLIT_NAMES

RELEASE = "copy the file again from the official release"
HEADER = "Topic,File,Sentence Number\n"


def xml(*sentences: str, markables: str = "", relations: str = "") -> str:
    """Write an ECB+ file: tokens are numbered from 1, one per line from line 2; sentences from 0."""
    words = [(number, word) for number, words in enumerate(sentences) for word in words.split(" ")]
    tokens = "\n".join(
        f'<token t_id="{place}" sentence="{sentence}" number="0">{word}</token>'
        for place, (sentence, word) in enumerate(words, start=1)
    )
    annotation = f"<Markables>\n{markables}\n</Markables>\n<Relations>\n{relations}\n</Relations>"
    return f'<Document doc_name="x">\n{tokens}\n{annotation}\n</Document>\n'


def markable(tag: str, identifier: int, *anchors: int) -> str:
    inner = "".join(f'<token_anchor t_id="{anchor}"/>' for anchor in anchors)
    return f'<{tag} m_id="{identifier}" >{inner}</{tag}>'


# Sentence 1 is validated: 5 Fire 6 broke 7 swiftly 8 out 9 at 10 noon. Token 4 is white space.
MARKABLES = "\n".join(
    [
        markable("TIME_OF_THE_DAY", 9, 10),
        markable("ACTION_OCCURRENCE", 1, 6, 8),  # broke ... out
        markable("NEG_ACTION_STATE", 2, 7),
        markable("HUMAN_PART_PER", 3, 5, 6),
        markable("ACTION_OCCURRENCE", 4, 5),
        markable("ACTION_OCCURRENCE", 5, 1),  # in a sentence that was not validated
        markable("LOC_GEO", 6, 3, 4),  # crosses the border of one that was not
        '<ACTION_STATE m_id="20" RELATED_TO="" TAG_DESCRIPTOR="x" instance_id="ACT7" />',
        '<ACTION_STATE m_id="21" RELATED_TO="" TAG_DESCRIPTOR="x" />',
    ]
)
RELATIONS = """\
<CROSS_DOC_COREF r_id="30" ><source m_id="1" /><source m_id="5" /><target m_id="20" /></CROSS_DOC_COREF>
<INTRA_DOC_COREF r_id="31" ><source m_id="2" /><source m_id="3" /><source m_id="4" /><target m_id="21" />\
</INTRA_DOC_COREF>"""
PLAIN = xml(
    "Fire in town", "\t Fire broke swiftly out at noon", "It burnt", markables=MARKABLES, relations=RELATIONS
)
WITH_ADDRESS = xml(
    "http : x",
    "The blaze\ufffd &amp; smoke",
    "Out broke it",
    markables=f"{markable('ACTION_OCCURRENCE', 1, 5)}{markable('ACTION_OCCURRENCE', 2, 8)}"
    '<ACTION_STATE m_id="20" RELATED_TO="" instance_id="ACT7" />',
    relations='<CROSS_DOC_COREF r_id="30" ><source m_id="2" /><source m_id="1" /><target m_id="20" />'
    "</CROSS_DOC_COREF>",
)
ALONE = xml("Rain", markables=markable("ACTION_OCCURRENCE", 1, 1))


@pytest.fixture
def corpus(write: Callable[..., Path], tmp_path: Path) -> Path:
    write("ECB+/36/36_1ecb.xml", PLAIN)
    write("ECB+/36/36_2ecb.xml", ALONE)  # no sentence of it is validated
    write("ECB+/36/36_1ecbplus.xml", WITH_ADDRESS)
    write("ECB+/37/37_3ecb.xml", ALONE)
    write("ECB+/1/1_1ecb.xml", ALONE)
    # trailing space, carriage return, blank line, a line twice, quotes
    rows = '36,1ecbplus,2 \r\n36,1ecbplus,1\n\n36,1ecb,1 \n36,1ecb,1\n"37","3ecb","0"\n1,1ecb,0\n'
    write(CSV_NAME, HEADER + rows)
    return tmp_path


def read(corpus: Path, split: str = "test") -> list:
    found = coreference_files(corpus)[SPLIT_NAMES[split]]
    return topics_of(read_ecb_plus(found, passed_over=PassedOver()), corpus)


def test_topics_and_mentions(corpus):
    first, second = read(corpus)
    assert (first.id, second.id) == ("36", "37")
    plain, plus = first.documents
    assert (plain.id, plain.topic, plain.subtopic) == ("36_1ecb", "36", "36_ecb")
    assert " ".join(plain.tokens) == "Fire in town Fire broke swiftly out at noon It burnt"
    assert (plain.sentences, plain.validated) == (((0, 3), (3, 9), (9, 11)), (1,))
    assert (plus.id, plus.topic, plus.subtopic) == ("36_1ecbplus", "36", "36_ecbplus")
    assert plus.tokens == ("The", "blaze", "&", "smoke", "Out", "broke", "it")
    assert (plus.sentences, plus.validated) == (((0, 4), (4, 7)), (0, 1))
    assert [(m.id, m.tokens, m.sentence, m.kind, m.cluster, m.tag) for m in plain.mentions] == [
        ("36_1ecb:4", (3, 4), 1, "event", "36_1ecb:intra:31:event", "ACTION_OCCURRENCE"),
        ("36_1ecb:3", (3, 5), 1, "entity", "36_1ecb:intra:31:entity", "HUMAN_PART_PER"),
        ("36_1ecb:1", (4, 7), 1, "event", "ACT7", "ACTION_OCCURRENCE"),
        ("36_1ecb:2", (5, 6), 1, "event", "36_1ecb:intra:31:event", "NEG_ACTION_STATE"),
        ("36_1ecb:9", (8, 9), 1, "entity", "36_1ecb:9", "TIME_OF_THE_DAY"),
    ]
    texts = [plain.text_of(mention) for mention in plain.mentions]
    assert texts == ["Fire", "Fire broke", "broke swiftly out", "swiftly", "noon"]
    assert [(m.id, plus.text_of(m), m.sentence) for m in plus.mentions] == [
        ("36_1ecbplus:1", "blaze", 0),
        ("36_1ecbplus:2", "Out", 1),
    ]
    assert [m.cluster for m in mentions_of([second])] == ["37_3ecb:1"]
    assert [m.id for m in gold_clusters([first])["ACT7"]] == ["36_1ecb:1", "36_1ecbplus:1", "36_1ecbplus:2"]
    assert [topic.id for topic in read(corpus, "train")] == ["1"]


def test_folders(corpus, tmp_path, refused):
    """The parent folder of the corpus may be given, too."""
    assert coreference_files(corpus / "ECB+") == {}
    assert list(coreference_files(corpus)) == ["train", "test"]
    inner = tmp_path / "around" / "ECB+_LREC2014"
    inner.mkdir(parents=True)
    (corpus / "ECB+").rename(inner / "ECB+")
    what = f"{CSV_NAME} is missing, which names the sentences that were annotated"
    with refused(inner, f"1: folder: {what}; copy it from the official release"):
        read(inner.parent)
    (corpus / CSV_NAME).rename(inner / CSV_NAME)
    assert [topic.id for topic in read(inner.parent)] == ["36", "37"]


NO_TEXT = "with text; correct the number, or delete the line"
HOLE = "copy the whole of the official release, or delete the line"
LISTED = "write topic (1 to 45), file and sentence as 36,1ecbplus,3"


@pytest.mark.parametrize(("rows", "message"), [
    *((f"{HEADER}{row}\n", f"2: row: '{row}' names no sentence; {LISTED}")
      for row in ("x,1ecb,1", "46,1ecb,1", "36,1ecb.xml,1", "36,1ecb,-1", "36,1ecb,", "36,1ecb")),
    (HEADER + "36,1ecb,1\n\n36,1ecb,3\n", f"4: Sentence Number: 36_1ecb has no sentence 3 {NO_TEXT}"),
    (HEADER + "36,1ecbplus,0\n36,1ecb,1\n",
     f"2: Sentence Number: 36_1ecbplus has no sentence 0 {NO_TEXT}"),
    (HEADER + "36,1ecb,1\n36,9ecb,1\n", f"3: File: there is no 36/36_9ecb.xml; {HOLE}"),
    ("36,1ecb,1\n", "1: header: '36,1ecb,1' is not the header; begin with Topic,File,Sentence Number"),
])  # fmt: skip
def test_malformed_list(corpus, write, refused, rows, message):
    with refused(write(CSV_NAME, rows), message):
        read(corpus)


def test_documents_of_other_splits_may_be_missing(corpus, write):
    write(CSV_NAME, HEADER + "36,1ecb,1\n37,3ecb,0\n2,9ecb,1\n")
    assert len(read(corpus)) == 2


def test_annotation_that_does_not_fit_together(corpus, write, refused):
    """A document without text, or a cluster of both kinds is refused."""
    for name, text in (("36_1ecbplus.xml", "http : x"), ("36_1ecb.xml", " \ufffd")):  # the address alone
        path = write(f"ECB+/36/{name}", xml(text))
        with refused(path, f"1: token: no token has any text; {RELEASE}"):
            read(corpus)
    write("ECB+/36/36_1ecb.xml", PLAIN)
    write("ECB+/36/36_1ecbplus.xml", WITH_ADDRESS.replace("ACTION_OCCURRENCE", "LOC_GEO"))
    with pytest.raises(ValueError, match=r"cluster ACT7 is of both kinds: mention 36_1ecb:1 of .*; correct"):
        read(corpus)


BY_T_ID = "name tokens of the document by their t_id"
NOT_THERE = "which is not there; name markables by their m_id"
ONE_TARGET = "give it one: the markable that names it"
GIVEN, TWO_PLACES = 'the mention m_id="1"', "has tokens without text or in two sentences"
NUMBER = 'write the number from 0, as in sentence="3"'
TOKEN = 'sentence="1" number="0">noon'


@pytest.mark.parametrize(("old", "new", "message"), [
    ('<token_anchor t_id="8"/>', '<token_anchor t_id="99"/>',
     f"16: token_anchor: {GIVEN} names the token '99', which is not there; {BY_T_ID}"),
    ('m_id="2" >', 'm_id="1" >', '16: m_id: a second markable m_id="1"; number the markables of a file'),
    ('<target m_id="20" />', "", f'26: target: the relation r_id="30" has 0 targets; {ONE_TARGET}'),
    ('<target m_id="20" />', '<target m_id="77" />',
     f"26: m_id: the relation r_id=\"30\" names the markable '77', {NOT_THERE}"),
    ('<source m_id="4" />', '<source m_id="1" />',
     '27: source: the mention m_id="1" is in two relations; leave it in one of them'),
    ('instance_id="ACT7"', "",
     '22: instance_id: missing in the markable m_id="20", the target of the relation r_id="30"; '
     f"{RELEASE}"),
    ('<token t_id="3"', '<token t_id="2"', '3: t_id: a second token t_id="2"; number the tokens from 1'),
    (TOKEN, 'sentence="0" number="0">noon',
     '11: sentence: 0 of the token t_id="10" comes after 1; put the tokens in order'),
    (TOKEN, 'number="0">noon', f'11: sentence: missing in the token t_id="10"; {NUMBER}'),
    ("</Relations>", "</Relation>",
     f"28: column 3: not XML (mismatched tag: line 28, column 2); {RELEASE}"),
    *((f"<{name}>.*</{name}>", "", f"1: {name}: there is no <{name}>; {RELEASE}")
      for name in ("Markables", "Relations")),
])  # fmt: skip
def test_malformed_annotation(corpus, write, refused, old, new, message):
    changed = re.sub(old if ".*" in old else re.escape(old), new, PLAIN, count=1, flags=re.DOTALL)
    assert changed != PLAIN
    with refused(write("ECB+/36/36_1ecb.xml", changed), message):
        read(corpus)


LAUGHS = "\n".join(
    [
        "<?xml version='1.0'?>",
        '<!DOCTYPE Document [<!ENTITY a0 "ha">',
        *(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)),
        "]>",
    ]
)
EXTERNAL = '<!DOCTYPE Document [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'
PARAMETER = '<!DOCTYPE Document [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]>'


@pytest.mark.parametrize(
    ("head", "entity", "line"),
    [(LAUGHS, "&a9;", 2), (EXTERNAL, "&secret;", 1), (PARAMETER, "x", 1)],
    ids=["expansion", "file", "parameter"],
)
def test_hostile_xml(corpus, write, head, entity, line):
    hostile = f'{head}\n<Document>\n<token t_id="1" sentence="0">{entity}</token>\n</Document>'
    path = re.escape(str(write("ECB+/36/36_1ecb.xml", hostile)))
    message = f"^{path}:{line}: field DOCTYPE: the XML defines entities .*; remove the DOCTYPE"
    for reads in (lambda: read(corpus), lambda: list(read_ecb_plus_topics(corpus, split="test"))):
        with pytest.raises(ValueError, match=message):
            reads()


# ---- plain text ----

TEXT = xml("http :", "The d&amp;am", "Broke  .")  # one token of the last sentence is empty
NAMES = "keep the official names, <topic>/<topic>_<number>ecb.xml or ...ecbplus.xml, topics 1 to 45"


def test_sub_topics_as_plain_text(write, tmp_path):
    for name in (
        "2/2_1ecb.xml", "2/2_9ecbplus.xml", "10/10_2ecbplus.xml", "10/10_11ecbplus.xml", "10/10_3ecb.xml",
        "36/36_1ecb.xml",
    ):  # fmt: skip
        write(f"ECB+_LREC2014/ECB+/{name}", TEXT)
    write("ECB+_LREC2014/ECB+/10/._10_3ecb.xml", b"\0")
    write("ECB+_LREC2014/README.txt", "x")
    for folder in (tmp_path, tmp_path / "ECB+_LREC2014", tmp_path / "ECB+_LREC2014" / "ECB+"):
        clusters = {one.id: one.documents for one in read_ecb_plus_topics(folder)}
        assert list(clusters) == ["2ecb", "2ecbplus", "10ecb", "10ecbplus", "36ecb"]
    assert [document.id for document in clusters["10ecbplus"]] == ["10_2ecbplus", "10_11ecbplus"]
    plus, (plain,) = clusters["10ecbplus"][0], clusters["10ecb"]
    assert plus.text == "The d&am\nBroke ."  # without the address of the page
    assert plain.text == "http :\nThe d&am\nBroke ."
    assert [plain.text[start:end] for start, end in plain.sentences] == ["http :", "The d&am", "Broke ."]
    assert [cluster.id for cluster in read_ecb_plus_topics(tmp_path, split="test")] == ["36ecb"]


def test_files_that_are_missing_or_have_other_names(write, tmp_path, refused):
    write("1/1_1ecb.xml", TEXT)
    assert ecb_plus_files(tmp_path, split="test") == list(read_ecb_plus_topics(tmp_path, split="test")) == []
    for name in ("1/1_1.xml", "1/2_1ecb.xml", "46/46_1ecb.xml", "1/01_1ecb.xml"):
        path = write(name, TEXT)
        with refused(path, f"1: file name: not the name of an ECB+ file; {NAMES}"):
            list(read_ecb_plus_topics(tmp_path))
        path.unlink()
    path = write("1/1_1ecb.xml", "<html><body>Not Found</body></html>")
    with refused(path, f"1: token: no token has any text; {RELEASE}"):
        list(read_ecb_plus_topics(tmp_path))


def test_every_topic_is_in_one_split():
    assert sorted(topic for topics in TOPICS.values() for topic in topics) == list(range(1, 46))


# ---- the real corpus ----


@pytest.fixture(scope="module")
def ecb_plus(unpacked) -> Path:
    return unpacked("ecbplus/ECB+_LREC2014.tar.gz")


# Topics, documents, validated sentences; for events and entities: mentions, clusters, clusters that are not
# singletons, and clusters cut at the borders of topics (three instances with mentions are in two topics of a
# split). Table 8 of the CDLM paper has the mentions and the clusters that are not singletons.
COUNTS = {
    "train": (25, 574, 1037, (3808, 1527, 411, 1527), (4758, 1286, 472, 1286)),
    "dev": (8, 196, 346, (1245, 409, 129, 409), (1476, 330, 125, 331)),
    "test": (10, 206, 457, (1780, 805, 182, 805), (2055, 608, 196, 610)),
}


@pytest.mark.parametrize("split", COUNTS)
def test_counts_of_the_real_corpus(ecb_plus, split):
    topics = read(ecb_plus, split)
    documents = [document for topic in topics for document in topic.documents]
    counts = [len(topics), len(documents), sum(len(document.validated) for document in documents)]
    for kind in ("event", "entity"):
        clusters = gold_clusters(topics, kind=kind).values()
        cut = len(gold_clusters(topics, kind=kind, by_topic=True))
        repeated = sum(len(members) > 1 for members in clusters)
        counts.append((sum(map(len, clusters)), len(clusters), repeated, cut))
    assert tuple(counts) == COUNTS[split]
    assert all(m.sentence in document.validated for document in documents for m in document.mentions)
    mentions = list(mentions_of(topics))
    assert len({mention.place for mention in mentions}) == len(mentions)
    assert not any("\ufffd" in token for document in documents for token in document.tokens)


# Topics and documents of the description that comes with the data.
@pytest.mark.parametrize(
    ("split", "topics", "documents"), [("train", 25, 575), ("validation", 8, 197), ("test", 10, 210)]
)
def test_plain_text_of_the_real_corpus(ecb_plus, split, topics, documents):
    clusters = list(read_ecb_plus_topics(ecb_plus, split=split))
    assert len(clusters) == 2 * topics
    texts = [document for cluster in clusters for document in cluster.documents]
    assert len(texts) == documents
    assert all(one.text and one.sentences and not one.text.startswith("http") for one in texts)
    if split == "train":
        assert [cluster.id for cluster in clusters[:2]] == ["1ecb", "1ecbplus"]
        document = clusters[1].documents[9]
        assert document.id == "1_10ecbplus"
        assert document.text.startswith("Lindsay Lohan checks into Betty Ford Center\nMay 03 , 2013\n")
        halves = [file.stem.endswith("plus") for file in ecb_plus_files(ecb_plus)]
        assert (halves.count(False), halves.count(True)) == (480, 502)
