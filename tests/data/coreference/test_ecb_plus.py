"""ECB+ by hand: validated mentions, plain text of topics, hostile XML; counts of the real corpus."""

import re
import tarfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from cdlm_lab.data.ecb_plus import CSV_NAME, TOPICS, ecb_plus_files, read_ecb_plus, read_ecb_plus_topics
from cdlm_lab.data.records import Topic, gold_clusters, mentions_of

TOKEN = '<token t_id="{}" sentence="{}" number="0">{}</token>'
RELEASE = "copy the file again from the official release"


def xml(*lines: str) -> str:
    return "\n".join(['<Document doc_name="x">', *lines, "</Document>\n"])


def tokens(*sentences: str) -> str:
    """Tokens numbered from 1; sentences from 0."""
    words = [(number, word) for number, words in enumerate(sentences) for word in words.split(" ")]
    return "\n".join(TOKEN.format(place, *item) for place, item in enumerate(words, start=1))


def markable(tag: str, identifier: int, *anchors: int) -> str:
    inner = "".join(f'<token_anchor t_id="{anchor}"/>' for anchor in anchors)
    return f'<{tag} m_id="{identifier}" >{inner}</{tag}>'


def descriptor(identifier: int, instance: str | None) -> str:
    given = f'instance_id="{instance}" ' if instance else ""
    return f'<ACTION_STATE m_id="{identifier}" RELATED_TO="" TAG_DESCRIPTOR="x" {given}/>'


def relation(tag: str, identifier: int, sources: tuple[int, ...], *targets: int) -> str:
    ends = [f'<source m_id="{source}" />' for source in sources]
    ends += [f'<target m_id="{target}" />' for target in targets]
    return f'<{tag} r_id="{identifier}" >{"".join(ends)}</{tag}>'


def annotation(markables: list[str], relations: list[str]) -> str:
    return "\n".join(["<Markables>", *markables, "</Markables>", "<Relations>", *relations, "</Relations>"])


# Sentence 1 is validated: 6 Fire 7 broke 8 swiftly 9 out 10 at 11 noon. Token 4 is white space.
PLAIN = xml(
    tokens("Fire in town", "\t Fire broke swiftly out at noon", "It burnt"),
    annotation(
        [
            markable("TIME_OF_THE_DAY", 9, 10),
            markable("ACTION_OCCURRENCE", 1, 6, 8),  # broke ... out
            markable("NEG_ACTION_STATE", 2, 7),
            markable("HUMAN_PART_PER", 3, 5, 6),
            markable("ACTION_OCCURRENCE", 4, 5),
            markable("ACTION_OCCURRENCE", 5, 1),  # in a sentence that was not validated
            markable("LOC_GEO", 6, 3, 4),  # crosses the border of one that was not
            descriptor(20, "ACT7"),
            descriptor(21, None),
        ],
        [relation("CROSS_DOC_COREF", 30, (1, 5), 20), relation("INTRA_DOC_COREF", 31, (2, 3, 4), 21)],
    ),
)
WITH_ADDRESS = xml(
    tokens("http : x", "The blaze\ufffd &amp; smoke", "Out broke it"),
    annotation(
        [markable("ACTION_OCCURRENCE", 1, 5), markable("ACTION_OCCURRENCE", 2, 8), descriptor(20, "ACT7")],
        [relation("CROSS_DOC_COREF", 30, (2, 1), 20)],
    ),
)
ALONE = xml(tokens("Rain"), annotation([markable("ACTION_OCCURRENCE", 1, 1)], []))
HEADER = "Topic,File,Sentence Number\n"


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


def test_topics(corpus):
    first, second = read_ecb_plus(corpus, "test")
    assert (first.id, second.id) == ("36", "37")
    plain, plus = first.documents
    assert (plain.id, plain.topic, plain.subtopic) == ("36_1ecb", "36", "36_ecb")
    assert plain.tokens == (
        "Fire", "in", "town", "Fire", "broke", "swiftly", "out", "at", "noon", "It", "burnt",
    )  # fmt: skip
    assert plain.sentences == ((0, 3), (3, 9), (9, 11))
    assert plain.validated == (1,)
    assert (plus.id, plus.topic, plus.subtopic) == ("36_1ecbplus", "36", "36_ecbplus")
    assert plus.tokens == ("The", "blaze", "&", "smoke", "Out", "broke", "it")
    assert plus.sentences == ((0, 4), (4, 7))
    assert plus.validated == (0, 1)
    assert [topic.id for topic in read_ecb_plus(corpus, "train")] == ["1"]
    assert [topic.id for topic in read_ecb_plus(str(corpus), "test")] == ["36", "37"]


def test_mentions(corpus):
    first, second = read_ecb_plus(corpus, "test")
    plain, plus = first.documents
    found = [(m.id, m.tokens, m.sentence, m.kind, m.cluster, m.tag) for m in plain.mentions]
    assert found == [
        ("36_1ecb:4", (3, 4), 1, "event", "36_1ecb:intra:31:event", "ACTION_OCCURRENCE"),
        ("36_1ecb:3", (3, 5), 1, "entity", "36_1ecb:intra:31:entity", "HUMAN_PART_PER"),
        ("36_1ecb:1", (4, 7), 1, "event", "ACT7", "ACTION_OCCURRENCE"),
        ("36_1ecb:2", (5, 6), 1, "event", "36_1ecb:intra:31:event", "NEG_ACTION_STATE"),
        ("36_1ecb:9", (8, 9), 1, "entity", "36_1ecb:9", "TIME_OF_THE_DAY"),
    ]
    assert [plain.text_of(mention) for mention in plain.mentions] == [
        "Fire", "Fire broke", "broke swiftly out", "swiftly", "noon",
    ]  # fmt: skip
    assert [(m.id, plus.text_of(m), m.sentence) for m in plus.mentions] == [
        ("36_1ecbplus:1", "blaze", 0),
        ("36_1ecbplus:2", "Out", 1),
    ]
    assert [m.cluster for m in mentions_of([second])] == ["37_3ecb:1"]
    assert [m.id for m in gold_clusters([first])["ACT7"]] == ["36_1ecb:1", "36_1ecbplus:1", "36_1ecbplus:2"]


def test_addresses(corpus):
    first, _ = read_ecb_plus(corpus, "test", addresses=True)
    plain, plus = first.documents
    assert plus.tokens[:4] == ("http", ":", "x", "The")
    assert plus.sentences == ((0, 3), (3, 7), (7, 10))
    assert plus.validated == (1, 2)
    assert [(plus.text_of(m), m.sentence) for m in plus.mentions] == [("blaze", 1), ("Out", 2)]
    assert plain == next(read_ecb_plus(corpus, "test")).documents[0]


def test_folder_around_the_corpus(corpus, tmp_path):
    inner = tmp_path / "around" / "ECB+_LREC2014"
    inner.mkdir(parents=True)
    (corpus / "ECB+").rename(inner / "ECB+")
    (corpus / CSV_NAME).rename(inner / CSV_NAME)
    assert [topic.id for topic in read_ecb_plus(inner.parent, "test")] == ["36", "37"]


def test_unknown_split(corpus):
    with pytest.raises(ValueError, match=r"^split is 'tset'; choose one of train, dev, test$"):
        next(read_ecb_plus(corpus, "tset"))
    assert [topic.id for topic in read_ecb_plus(corpus, "train")] == ["1"]


ROOT = f"give the folder that holds ECB+ and {CSV_NAME}"


def test_folders_that_are_missing(corpus, refused, write):
    with refused(corpus / "no", f"1: folder: there is no such folder; {ROOT}"):
        list(read_ecb_plus(corpus / "no", "test"))
    with refused(corpus / "ECB+", f"1: folder: there is no folder ECB+ in it; {ROOT}"):
        list(read_ecb_plus(corpus / "ECB+", "test"))
    with refused(corpus, "1: folder: no ECB+ files for the split validation; copy the folders of its topics"):
        list(read_ecb_plus(corpus, "dev"))
    (corpus / CSV_NAME).unlink()
    what = f"{CSV_NAME} is missing, which names the sentences that were annotated"
    with refused(corpus, f"1: folder: {what}; copy it from the official release"):
        list(read_ecb_plus(corpus, "test"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (HEADER + "36,1ecb,1\n36,1ecb\n", "3: row: 2 columns instead of 3; write it as 36,1ecbplus,3"),
        (HEADER + "36;1ecb;1\n", "2: row: 1 columns instead of 3; write it as 36,1ecbplus,3"),
        (HEADER + "x,1ecb,1\n", "2: Topic: 'x' is none; write it as 36"),
        (HEADER + "46,1ecb,1\n", "2: Topic: 46 is not a topic of ECB+; the topics are 1 to 45"),
        (HEADER + "36,1ecb.xml,1\n", "2: File: '1ecb.xml' is none; write it as 1ecbplus"),
        (HEADER + "36,1ecb,-1\n", "2: Sentence Number: '-1' is none; write it as 3"),
        (HEADER + "36,1ecb,\n", "2: Sentence Number: '' is none; write it as 3"),
        (
            HEADER + "36,1ecb,1\n\n36,1ecb,3\n",
            "4: Sentence Number: 36_1ecb has no sentence 3 with text; correct the number, or delete the line",
        ),
        (
            HEADER + "36,1ecbplus,0\n36,1ecb,1\n",
            "2: Sentence Number: 36_1ecbplus has no sentence 0 with text; correct the number, or delete "
            "the line",
        ),
        (
            HEADER + "36,1ecb,1\n36,9ecb,1\n",
            "3: File: there is no 36/36_9ecb.xml; copy the whole of the official release, or delete the line",
        ),
        (
            "36,1ecb,1\n",
            "1: header: '36,1ecb,1' is not the header; begin with Topic, File, Sentence Number, commas "
            "between",
        ),
    ],
)
def test_malformed_list(corpus, write, refused, rows, message):
    path = write(CSV_NAME, rows)
    with refused(path, message):
        list(read_ecb_plus(corpus, "test"))


def test_documents_of_other_splits_may_be_missing(corpus, write):
    write(CSV_NAME, HEADER + "36,1ecb,1\n37,3ecb,0\n2,9ecb,1\n")
    assert len(list(read_ecb_plus(corpus, "test"))) == 2


NO_MENTION = (
    f"1: folder: no mention in a validated sentence; annotate some, or list the sentences in {CSV_NAME}"
)


def test_no_mentions(corpus, write, refused):
    write("ECB+/37/37_3ecb.xml", xml(tokens("Rain"), annotation([], [])))
    with refused(corpus / "ECB+" / "37", NO_MENTION):
        list(read_ecb_plus(corpus, "test"))
    write(CSV_NAME, HEADER + "37,3ecb,0\n")
    with refused(corpus / "ECB+" / "36", NO_MENTION):
        list(read_ecb_plus(corpus, "test"))


def test_cluster_of_both_kinds(corpus, write, refused):
    markables = [markable("LOC_GEO", 5, 5), descriptor(20, "ACT7")]
    other = xml(
        tokens("http : x", "The blaze"), annotation(markables, [relation("CROSS_DOC_COREF", 1, (5,), 20)])
    )
    write("ECB+/36/36_1ecbplus.xml", other)
    write(CSV_NAME, HEADER + "36,1ecb,1\n36,1ecbplus,1\n37,3ecb,0\n")
    one, two = "mention 36_1ecb:1 of document 36_1ecb", "mention 36_1ecbplus:5 of document 36_1ecbplus"
    what = f"cluster ACT7 is of both kinds: {one} is an event, {two} an entity; split the cluster"
    remedy = "correct the instance_id that one of its relations leads to"
    with refused(corpus / "ECB+" / "36", f"1: instance_id: {what}; {remedy}"):
        list(read_ecb_plus(corpus, "test"))


def test_document_without_text(corpus, write, refused):
    only_address = write("ECB+/36/36_1ecbplus.xml", xml(tokens("http : x"), annotation([], [])))
    with refused(only_address, f"1: token: no token has any text; {RELEASE}"):
        list(read_ecb_plus(corpus, "test"))
    empty = write("ECB+/36/36_1ecb.xml", xml(tokens(" \ufffd"), annotation([], [])))
    with refused(empty, f"1: token: no token has any text; {RELEASE}"):
        list(read_ecb_plus(corpus, "test"))


@pytest.fixture(scope="module")
def ecb_plus(real_data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ecb_plus")
    with tarfile.open(real_data("ecbplus") / "ECB+_LREC2014.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


# Topics, documents, validated sentences; for events and entities: mentions, clusters, clusters that are not
# singletons. Table 8 of the CDLM paper has the mentions and the last numbers.
COUNTS = {
    "train": (25, 574, 1037, (3808, 1527, 411), (4758, 1286, 472)),
    "dev": (8, 196, 346, (1245, 409, 129), (1476, 330, 125)),
    "test": (10, 206, 457, (1780, 805, 182), (2055, 608, 196)),
}
# Clusters cut at the borders of topics: three instances with mentions in this split are in two topics.
BY_TOPIC = {"train": (1527, 1286), "dev": (409, 331), "test": (805, 610)}


def counts(topics: list[Topic], kind: str) -> tuple[int, int, int]:
    clusters = gold_clusters(topics, kind=kind).values()
    return sum(map(len, clusters)), len(clusters), sum(len(members) > 1 for members in clusters)


@pytest.mark.parametrize("split", COUNTS)
def test_counts_of_the_real_corpus(ecb_plus, split):
    topics = list(read_ecb_plus(ecb_plus, split))
    documents = [document for topic in topics for document in topic.documents]
    validated = sum(len(document.validated) for document in documents)
    assert (len(topics), len(documents), validated) == COUNTS[split][:3]
    assert counts(topics, "event") == COUNTS[split][3]
    assert counts(topics, "entity") == COUNTS[split][4]
    cut = tuple(len(gold_clusters(topics, kind=kind, by_topic=True)) for kind in ("event", "entity"))
    assert cut == BY_TOPIC[split]
    assert all(m.sentence in document.validated for document in documents for m in document.mentions)
    assert len({mention.place for mention in mentions_of(topics)}) == sum(
        len(document.mentions) for document in documents
    )
    assert not any("\ufffd" in token for document in documents for token in document.tokens)


def test_documents_of_the_real_corpus(ecb_plus):
    first = next(read_ecb_plus(ecb_plus, "test"))
    assert first.id == "36"
    names = [document.id for document in first.documents]
    assert (names[0], names[9], names[-1]) == ("36_1ecb", "36_1ecbplus", "36_11ecbplus")
    document = next(document for document in first.documents if document.id == "36_1ecbplus")
    assert (document.subtopic, len(document.mentions)) == ("36_ecbplus", 22)
    kept = next(read_ecb_plus(ecb_plus, "test", addresses=True))
    whole = next(found for found in kept.documents if found.id == "36_1ecbplus")
    address = whole.sentences[0][1]
    assert whole.tokens[:2] == ("http", ":")
    assert whole.tokens[address:] == document.tokens
    assert [mention.id for mention in whole.mentions] == [mention.id for mention in document.mentions]


def test_broken_tokens_of_the_real_corpus(ecb_plus, tmp_path):
    """Each of the three documents lacks exactly the token that is white space."""
    source = ecb_plus / "ECB+_LREC2014"
    (tmp_path / "ECB+").mkdir()
    for topic in ("9", "31"):
        (tmp_path / "ECB+" / topic).symlink_to(source / "ECB+" / topic)
    rows = (source / CSV_NAME).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / CSV_NAME).write_text("".join(row for row in rows if row.startswith(("Topic,", "9,", "31,"))))
    lost = {}
    for topic in read_ecb_plus(tmp_path, "train", addresses=True):
        for document in topic.documents:
            text = (source / "ECB+" / topic.id / f"{document.id}.xml").read_text(encoding="utf-8")
            if missing := text.count("<token t_id=") - len(document.tokens):
                lost[document.id] = missing
    assert lost == {"31_10ecbplus": 1, "9_3ecbplus": 1, "9_4ecbplus": 1}


NAME_REMEDY = "keep the official names, <topic>/<topic>_<number>ecb.xml or ...ecbplus.xml, topics 1 to 45"


def document(*tokens: tuple[int, str]) -> str:
    lines = "".join(
        f'<token t_id="{n}" sentence="{sentence}" number="0">{text}</token>\n'
        for n, (sentence, text) in enumerate(tokens, start=1)
    )
    return f'<Document doc_name="x">\n{lines}<Markables>\n<ACTION m_id="1"/></Markables></Document>\n'


TOPICS_WITH_ADDRESS = document(
    (0, "http"), (0, ":"), (1, "The"), (1, "d&amp;am"), (2, "Broke"), (2, ""), (2, ".")
)


def test_sub_topics(write, tmp_path):
    for name in (
        "2/2_1ecb.xml",
        "10/10_2ecbplus.xml",
        "10/10_11ecbplus.xml",
        "10/10_3ecb.xml",
        "36/36_1ecb.xml",
    ):
        write(f"ECB+_LREC2014/ECB+/{name}", TOPICS_WITH_ADDRESS)
    write("ECB+_LREC2014/ECB+/10/._10_3ecb.xml", b"\0")
    write("ECB+_LREC2014/README.txt", "x")
    for folder in (tmp_path, tmp_path / "ECB+_LREC2014", tmp_path / "ECB+_LREC2014" / "ECB+"):
        clusters = list(read_ecb_plus_topics(folder))
        assert [cluster.id for cluster in clusters] == ["2ecb", "10ecb", "10ecbplus", "36ecb"]
    assert [found.id for found in clusters[2].documents] == ["10_2ecbplus", "10_11ecbplus"]
    plus, plain = clusters[2].documents[0], clusters[1].documents[0]
    assert plus.text == "The d&am\nBroke ."  # without the address of the page
    assert plain.text == "http :\nThe d&am\nBroke ."
    assert [plain.text[start:end] for start, end in plain.sentences] == ["http :", "The d&am", "Broke ."]
    assert [cluster.id for cluster in read_ecb_plus_topics(tmp_path, split="validation")] == ["2ecb"]
    assert [cluster.id for cluster in read_ecb_plus_topics(tmp_path, split="test")] == ["36ecb"]


def test_whole_topics(write, tmp_path):
    for name in ("2/2_1ecbplus.xml", "2/2_9ecb.xml", "10/10_3ecb.xml"):
        write(name, TOPICS_WITH_ADDRESS)
    clusters = list(read_ecb_plus_topics(tmp_path, by_topic=True))
    assert [(cluster.id, [document.id for document in cluster.documents]) for cluster in clusters] == [
        ("2", ["2_9ecb", "2_1ecbplus"]),
        ("10", ["10_3ecb"]),
    ]


def test_no_files(write, tmp_path, refused):
    with refused(tmp_path, f"1: folder: no ECB+ files; {NAME_REMEDY}"):
        list(read_ecb_plus_topics(tmp_path))
    write("1/1_1ecb.xml", TOPICS_WITH_ADDRESS)
    assert ecb_plus_files(tmp_path, split="test") == []
    with refused(tmp_path, f"1: folder: no ECB+ files for the split test; {NAME_REMEDY}"):
        list(read_ecb_plus_topics(tmp_path, split="test"))


@pytest.mark.parametrize("name", ["1/1_1.xml", "1/2_1ecb.xml", "46/46_1ecb.xml", "1/01_1ecb.xml"])
def test_other_names(write, tmp_path, refused, name):
    path = write(name, TOPICS_WITH_ADDRESS)
    with refused(path, f"1: file name: not the name of an ECB+ file; {NAME_REMEDY}"):
        list(read_ecb_plus_topics(tmp_path))


SECOND = '<token t_id="2" sentence="0" number="0">:</token>'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            SECOND,
            SECOND.replace('sentence="0" ', ""),
            '3: sentence: missing in the token t_id="2"; write the number from 0, as in sentence="3"',
        ),
        (
            SECOND,
            SECOND.replace('"0"', '"-1"', 1),
            "3: sentence: '-1' of the token t_id=\"2\" is not a number; write the number from 0, as in "
            'sentence="3"',
        ),
        (
            "<Markables>",
            "<Markables></oops>",
            "9: column 14: not XML (mismatched tag: line 9, column 13); copy the file again from the "
            "official release",
        ),
    ],
)
def test_malformed_line(write: Callable[..., Path], tmp_path, refused, old, new, message):
    path = write("1/1_1ecb.xml", TOPICS_WITH_ADDRESS.replace(old, new, 1))
    with refused(path, message):
        list(read_ecb_plus_topics(tmp_path))


def test_entities_are_refused(write, tmp_path):
    bomb = '<!DOCTYPE d [<!ENTITY a "aaaa">]><Document><token t_id="1" sentence="0">&a;</token></Document>'
    write("1/1_1ecb.xml", bomb)
    with pytest.raises(
        ValueError, match=r"1_1ecb\.xml:1: field DOCTYPE: the XML defines entities .*; remove the"
    ):
        list(read_ecb_plus_topics(tmp_path))


def test_every_topic_is_in_one_split():
    assert sorted(topic for topics in TOPICS.values() for topic in topics) == list(range(1, 46))


@pytest.fixture(scope="module")
def topics_ecb_plus(real_data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ecb_plus")
    with tarfile.open(real_data("ecbplus") / "ECB+_LREC2014.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


# Topics and documents of the description that comes with the data.
@pytest.mark.parametrize(
    ("split", "topics", "documents"), [("train", 25, 575), ("validation", 8, 197), ("test", 10, 210)]
)
def test_counts_of_the_real_corpus_of_topics(topics_ecb_plus, split, topics, documents):
    clusters = list(read_ecb_plus_topics(topics_ecb_plus, split=split))
    assert len(clusters) == 2 * topics
    whole = [
        len(cluster.documents)
        for cluster in read_ecb_plus_topics(topics_ecb_plus, split=split, by_topic=True)
    ]
    assert (len(whole), sum(whole)) == (topics, documents)
    assert sum(len(cluster.documents) for cluster in clusters) == documents
    assert all(document.text and document.sentences for cluster in clusters for document in cluster.documents)
    assert not any(document.text.startswith("http") for cluster in clusters for document in cluster.documents)


def test_documents_of_the_real_corpus_of_topics(topics_ecb_plus):
    halves = [file.stem.endswith("plus") for file in ecb_plus_files(topics_ecb_plus)]
    assert (halves.count(False), halves.count(True)) == (480, 502)
    first, second = islice(read_ecb_plus_topics(topics_ecb_plus, split="train"), 2)
    assert (first.id, second.id) == ("1ecb", "1ecbplus")
    document = second.documents[9]
    assert document.id == "1_10ecbplus"
    assert document.text.startswith("Lindsay Lohan checks into Betty Ford Center\nMay 03 , 2013\n")


def test_a_page_in_place_of_a_document(write, tmp_path, refused):
    path = write("1/1_1ecb.xml", "<html><body>Not Found</body></html>")
    remedy = "copy the file again from the official release"
    with refused(path, f"1: token: no token has any text; {remedy}"):
        list(read_ecb_plus_topics(tmp_path))


# Sentence 1 is validated. Token 4 is white space, token 11 in another sentence.
ANNOTATED = """\
<Document doc_name="x">
<token t_id="1" sentence="0" number="0">Fire</token>
<token t_id="2" sentence="0" number="0">in</token>
<token t_id="3" sentence="0" number="0">town</token>
<token t_id="4" sentence="1" number="0"> </token>
<token t_id="5" sentence="1" number="0">Fire</token>
<token t_id="6" sentence="1" number="0">broke</token>
<token t_id="7" sentence="1" number="0">swiftly</token>
<token t_id="8" sentence="1" number="0">out</token>
<token t_id="9" sentence="1" number="0">at</token>
<token t_id="10" sentence="1" number="0">noon</token>
<token t_id="11" sentence="2" number="0">It</token>
<token t_id="12" sentence="2" number="0">burnt</token>
<Markables>
<TIME_OF_THE_DAY m_id="9" ><token_anchor t_id="10"/></TIME_OF_THE_DAY>
<ACTION_OCCURRENCE m_id="1" ><token_anchor t_id="6"/><token_anchor t_id="8"/></ACTION_OCCURRENCE>
<NEG_ACTION_STATE m_id="2" ><token_anchor t_id="7"/></NEG_ACTION_STATE>
<HUMAN_PART_PER m_id="3" ><token_anchor t_id="5"/><token_anchor t_id="6"/></HUMAN_PART_PER>
<ACTION_OCCURRENCE m_id="4" ><token_anchor t_id="5"/></ACTION_OCCURRENCE>
<ACTION_OCCURRENCE m_id="5" ><token_anchor t_id="1"/></ACTION_OCCURRENCE>
<LOC_GEO m_id="6" ><token_anchor t_id="3"/><token_anchor t_id="4"/></LOC_GEO>
<ACTION_STATE m_id="20" RELATED_TO="" TAG_DESCRIPTOR="x" instance_id="ACT7" />
<ACTION_STATE m_id="21" RELATED_TO="" TAG_DESCRIPTOR="x" />
</Markables>
<Relations>
<CROSS_DOC_COREF r_id="30" ><source m_id="1" /><source m_id="5" /><target m_id="20" /></CROSS_DOC_COREF>
<INTRA_DOC_COREF r_id="31" ><source m_id="2" /><source m_id="4" /><target m_id="21" /></INTRA_DOC_COREF>
</Relations>
</Document>
"""
XML_RELEASE = "copy the file again from the official release"


@pytest.fixture
def xml_corpus(write: Callable[..., Path], tmp_path: Path) -> Path:
    write("ECB+/36/36_1ecb.xml", ANNOTATED)
    write(CSV_NAME, "Topic,File,Sentence Number\n36,1ecb,1\n")
    return tmp_path


def test_the_file_without_faults(xml_corpus):
    (topic,) = read_ecb_plus(xml_corpus, "test")
    assert [len(document.mentions) for document in topic.documents] == [5]


BY_T_ID = "name tokens of the document by their t_id"
BY_M_ID = "name markables by their m_id"
ONE_TARGET = "give it one: the markable that names it"
GIVEN = 'the mention m_id="1"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '<token_anchor t_id="8"/>',
            '<token_anchor t_id="99"/>',
            f"16: token_anchor: {GIVEN} names the token '99', which is not there; {BY_T_ID}",
        ),
        (
            '<token_anchor t_id="6"/><token_anchor t_id="8"/>',
            "",
            f"16: token_anchor: {GIVEN} has no tokens; {BY_T_ID}",
        ),
        (
            '<token_anchor t_id="8"/>',
            '<token_anchor t_id="4"/>',
            f"16: token_anchor: {GIVEN} has tokens without text or in two sentences; {BY_T_ID}",
        ),
        (
            '<token_anchor t_id="8"/>',
            '<token_anchor t_id="11"/>',
            f"16: token_anchor: {GIVEN} has tokens without text or in two sentences; {BY_T_ID}",
        ),
        ('m_id="2" >', 'm_id="1" >', '16: m_id: a second markable m_id="1"; number the markables of a file'),
        (
            '<HUMAN_PART_PER m_id="3" >',
            "<HUMAN_PART_PER >",
            "1: m_id: missing in a markable HUMAN_PART_PER; number the markables of a file",
        ),
        ('<target m_id="20" />', "", f'26: target: the relation r_id="30" has 0 targets; {ONE_TARGET}'),
        (
            '<target m_id="20" />',
            '<target m_id="20" /><target m_id="21" />',
            f'26: target: the relation r_id="30" has 2 targets; {ONE_TARGET}',
        ),
        (
            '<target m_id="20" />',
            '<target m_id="77" />',
            f"26: m_id: the relation r_id=\"30\" names the markable '77', which is not there; {BY_M_ID}",
        ),
        (
            '<source m_id="5" />',
            '<source m_id="78" />',
            f"26: m_id: the relation r_id=\"30\" names the markable '78', which is not there; {BY_M_ID}",
        ),
        (
            '<source m_id="4" />',
            '<source m_id="1" />',
            '27: source: the mention m_id="1" is in two relations; leave it in one of them',
        ),
        (
            'instance_id="ACT7"',
            "",
            f'22: instance_id: missing in the markable m_id="20", the target of the relation r_id="30"; '
            f"{XML_RELEASE}",
        ),
        ('<token t_id="3"', '<token t_id="2"', '3: t_id: a second token t_id="2"; number the tokens from 1'),
        ('<token t_id="3"', "<token", "1: t_id: missing in a token; number the tokens from 1"),
        (
            'sentence="1" number="0">noon',
            'sentence="0" number="0">noon',
            '11: sentence: 0 of the token t_id="10" comes after 1; put the tokens in order',
        ),
        (
            'sentence="1" number="0">noon',
            'number="0">noon',
            '11: sentence: missing in the token t_id="10"; write the number from 0, as in sentence="3"',
        ),
        (
            "</Relations>",
            "</Relation>",
            f"28: column 3: not XML (mismatched tag: line 28, column 2); {XML_RELEASE}",
        ),
    ],
)
def test_malformed_annotation(xml_corpus, write, refused, old, new, message):
    assert ANNOTATED.count(old) >= 1
    path = write("ECB+/36/36_1ecb.xml", ANNOTATED.replace(old, new, 1))
    with refused(path, message):
        list(read_ecb_plus(xml_corpus, "test"))


@pytest.mark.parametrize("name", ["Markables", "Relations"])
def test_sections_that_are_missing(xml_corpus, write, refused, name):
    path = write("ECB+/36/36_1ecb.xml", re.sub(f"<{name}>.*</{name}>", "", ANNOTATED, flags=re.DOTALL))
    with refused(path, f"1: {name}: there is no <{name}>; {XML_RELEASE}"):
        list(read_ecb_plus(xml_corpus, "test"))


LAUGHS = "\n".join(
    [
        "<?xml version='1.0'?>",
        '<!DOCTYPE Document [<!ENTITY a0 "ha">',
        *(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)),
        "]>",
    ]
)
EXTERNAL = '<!DOCTYPE Document [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("head", "entity", "line"),
    [
        (LAUGHS, "&a9;", 2),
        (EXTERNAL, "&secret;", 1),
        ('<!DOCTYPE Document [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]>', "x", 1),
    ],
    ids=["expansion", "file", "parameter"],
)
def test_hostile_xml(xml_corpus, write, head, entity, line):
    hostile = f'{head}\n<Document>\n<token t_id="1" sentence="0">{entity}</token>\n</Document>'
    path = write("ECB+/36/36_1ecb.xml", hostile)
    message = (
        f"^{re.escape(str(path))}:{line}: field DOCTYPE: the XML defines entities .*; remove the DOCTYPE"
    )
    with pytest.raises(ValueError, match=message):
        list(read_ecb_plus(xml_corpus, "test"))
