"""CoNLL files: written files are read unchanged, files of others, how far chains reach, what is lost."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.convert.conll import conll_files, read_conll, write_conll
from cdlm_lab.data.coreference import topics_of
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, PassedOver, Topic, gold_clusters

WORDS = ("Police", "made", "two", "arrests", ".", "They", "left")


def document(
    *mentions: tuple[int, int, str], name: str = "a", topic: str = "36", tokens: tuple[str, ...] = WORDS
) -> CoreferenceDocument:
    """Make a document with sentences of five and two tokens; mentions are (start, end, cluster)."""
    return CoreferenceDocument(
        id=name,
        topic=topic,
        subtopic=f"{topic}_ecb",
        tokens=tokens,
        sentences=((0, 5), (5, 7)),
        validated=(0,),
        mentions=tuple(
            CoreferenceMention(
                id=f"{name}:{number}",
                document=name,
                tokens=(start, end),
                sentence=int(start >= 5),
                kind="event",
                cluster=cluster,
            )
            for number, (start, end, cluster) in enumerate(mentions)
        ),
    )


def topics(*documents: CoreferenceDocument) -> list[Topic]:
    names = dict.fromkeys(document.topic for document in documents)
    return [Topic(id=name, documents=tuple(d for d in documents if d.topic == name)) for name in names]


def places(topics: list[Topic]) -> dict[str, set[tuple[str, int, int]]]:
    """Return name of a cluster -> places of its mentions."""
    return {name: {mention.place for mention in members} for name, members in gold_clusters(topics).items()}


def of_corpus(
    *files: Path, kind: str = "entity", chains: str = "auto", notes: list[str] | None = None
) -> tuple[list[Topic], dict[str, int]]:
    """Read a corpus; return its topics, and how often each kind of thing was ignored."""
    passed_over = PassedOver(notes=[] if notes is None else notes)
    documents = read_conll(("train", list(files)), passed_over=passed_over, kind=kind, chains=chains)
    corpus = topics_of(documents, "x")
    return corpus, {reason: count for reason, (count, _) in passed_over.counts.items()}


def rows(name: str, *sentences: str, form: str = "{name}\t{sentence}\t{token}\t{word}\t{mentions}\n") -> str:
    """Write rows of a document: words with their mentions after a slash; an empty line ends each sentence."""
    text = ""
    for sentence, words in enumerate(sentences):
        for token, word in enumerate(words.split()):
            word, _, mentions = word.partition("/")
            fields = {"name": name, "sentence": sentence, "token": token, "word": word}
            text += form.format(**fields, mentions=mentions or "-")
        text += "\n"
    return text


def section(name: str, rows: str) -> str:
    return f"#begin document {name}; part 000\n{rows}#end document\n"


def test_what_is_written_comes_back(tmp_path):
    """Nested spans of one cluster, crossing and equal spans of different clusters, singletons, two topics."""
    one = document((0, 1, "P"), (1, 4, "x"), (2, 4, "P"), (0, 2, "y"), (2, 4, "z"), (1, 5, "x"), (5, 6, "P"))
    two = document((6, 7, "alone"), name="b", topic="37")
    made, path = topics(one, two), tmp_path / "key.conll"
    write_conll(path, made, gold_clusters(made))
    lines = [
        "#begin document (corpus); part 000", "a\t36_ecb\t0\tPolice\t(1|(2)", "a\t36_ecb\t1\tmade\t(3|(3|1)",
        "a\t36_ecb\t2\ttwo\t(2|(4", "a\t36_ecb\t3\tarrests\t4)|2)|3)", "a\t36_ecb\t4\t.\t3)", "",
        "a\t36_ecb\t0\tThey\t(2)", "a\t36_ecb\t1\tleft\t-", "", "b\t37_ecb\t0\tPolice\t-",
        "b\t37_ecb\t1\tmade\t-", "b\t37_ecb\t2\ttwo\t-", "b\t37_ecb\t3\tarrests\t-", "b\t37_ecb\t4\t.\t-", "",
        "b\t37_ecb\t0\tThey\t-", "b\t37_ecb\t1\tleft\t(5)", "", "#end document", "",
    ]  # fmt: skip
    assert path.read_bytes().decode() == "\n".join(lines)
    (topic,), passed_over = of_corpus(path, kind="event")
    assert (topic.id, passed_over) == ("corpus", {})
    assert [(d.id, d.tokens, d.sentences, d.validated) for d in topic.documents] == [
        ("a", WORDS, ((0, 5), (5, 7)), (0, 1)),
        ("b", WORDS, ((0, 5), (5, 7)), (0, 1)),
    ]
    back = gold_clusters([topic])
    assert sorted(places([topic]).values(), key=sorted) == sorted(places(made).values(), key=sorted)
    assert sorted(back) == [f"corpus:{number}" for number in range(1, 6)]
    assert {mention.kind for members in back.values() for mention in members} == {"event"}
    assert [(m.tokens, m.sentence) for m in back["corpus:2"]] == [((0, 1), 0), ((2, 4), 0), ((5, 6), 1)]
    assert [mention.id for mention in back["corpus:5"]] == ["b:6-7:5"]


SPANS = st.sampled_from(
    [(start, end) for start in range(5) for end in range(start + 1, 6)] + [(5, 6), (5, 7), (6, 7)]
)


@given(st.lists(st.tuples(SPANS, st.sampled_from("abcdefgh")), min_size=1, max_size=14))
def test_whatever_is_written_comes_back(tmp_path_factory, drawn):
    kept: list[tuple[int, int, str]] = []
    for (start, end), cluster in drawn:
        others = [(a, b) for a, b, other in kept if other == cluster]
        nested = all(
            b <= start or end <= a or (a <= start and end <= b) or (start <= a and b <= end)
            for a, b in others
        )
        if nested and (start, end) not in others:
            kept.append((start, end, cluster))
    made, path = topics(document(*kept)), tmp_path_factory.mktemp("conll") / "x.conll"
    write_conll(path, made, gold_clusters(made))
    back, passed_over = of_corpus(path)
    assert sorted(places(back).values(), key=sorted) == sorted(places(made).values(), key=sorted)
    assert (sum(len(d.mentions) for topic in back for d in topic.documents), passed_over) == (len(kept), {})


(MENTION,) = document((1, 4, "c")).mentions
SHORT = CoreferenceDocument(
    id="a", topic="36", subtopic="x", tokens=("Rain",), sentences=((0, 1),), validated=()
)
BROKEN = "cannot stand in a CoNLL file: empty, a tab, a line break or a #"
CANNOT = "CoNLL and CorefUD cannot say so"
ONCE = "two documents of one id, or none at all; give each topic once"


@pytest.mark.parametrize(("documents", "clusters", "message"), [
    ([document((0, 2, "c"), (1, 3, "c"))], None,
     f"mention a:0 of document a and a:1 of cluster c cross each other; {CANNOT}"),
    ([document((0, 5, "c"), (0, 1, "c"), (0, 1, "c"))], None,
     f"mention a:1 of document a and a:2 of cluster c stand in the same place; {CANNOT}"),
    ([document(name="b")], {"c": [MENTION]},
     "mention a:0 of document a: the topics to be written have no such document"),
    ([document()], {"c": [MENTION], "d": [MENTION]},
     "mention a:0 of document a is in the clusters c and d"),
    ([SHORT], {"c": [MENTION]},
     "mention a:0 of document a: its tokens (1, 4) lie outside: the document has 1"),
    ([document(tokens=("a\tb", *WORDS[1:]))], {}, f"token 0 of document a 'a\\tb' {BROKEN}"),
    ([document(name="#a")], {}, f"document '#a' {BROKEN}"),
    ([document(topic="3\n6")], {}, f"sub-topic '3\\n6_ecb' {BROKEN}"),
    ([], {}, ONCE),
])  # fmt: skip
def test_what_cannot_be_written(tmp_path, documents, clusters, message):
    made = topics(*documents)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        write_conll(tmp_path / "x", made, gold_clusters(made) if clusters is None else clusters)
    with pytest.raises(ValueError, match=f"^{ONCE}$"):
        write_conll(tmp_path / "x", [*made, *made], {})
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_there_whole_or_not_at_all(tmp_path, monkeypatch, refused):
    with refused(tmp_path / "no" / "x", "1: folder: there is no such folder to write to; make it first"):
        write_conll(tmp_path / "no" / "x", topics(document()), {})
    path = tmp_path / "x.conll"
    path.write_text("before")

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_conll(path, topics(document()), {})
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x.conll", "before")]


SHARED_TASK = "{name} 0 {token} {word} NN * - - - - {mentions}\n"
EIGHT = "{topic}\t{topic}_0\t{name}\t{sentence}\t{token}\t{word}\tTrue\t{mentions}\n"
PARTS = rows("bc/x/01", "I/(0) saw her/(12|(3) car/12)", "She/(3)|(0 left/0)", form=SHARED_TASK)
JOINED = "mention across two sentences, which were joined"


def eight(topic: int, name: str, *sentences: str) -> str:
    """Write rows as in CD2CR: topics in the first column, no empty lines."""
    return rows(name, *sentences, form=EIGHT.replace("{topic}", str(topic))).replace("\n\n", "\n")


@pytest.mark.parametrize(("text", "documents", "clusters", "counted"), [
    # CoNLL-2012: parts are documents of their own, and chains end with the document
    ("".join(f"#begin document (bc/x/01); part 00{n}\n{PARTS}\n#end document\n" for n in (0, 1)),
     {f"bc/x/01{n}": ("bc/x/01" + n, "bc/x/01" + n, ((0, 4), (4, 6))) for n in ("", "/1")},
     {f"bc/x/01{n}:{chain}": {(f"bc/x/01{n}", *span) for span in spans} for n in ("", "/1")
      for chain, spans in {"0": [(0, 1), (4, 6)], "3": [(2, 3), (4, 5)], "12": [(2, 4)]}.items()}, {}),
    # GUM: a number that runs through the document, mentions without bars between
    ("# begin document G\n1\tThe\t(2\n2\tport\t(3)2)\n3\t10\t(4(3)\n4\tsaw\t4)\n\n5\tIt\t(2)\n"
     "# end document\n",
     {"G": ("train", "train", ((0, 4), (4, 5)))},
     {"train:2": {("G", 0, 2), ("G", 4, 5)}, "train:3": {("G", 1, 2), ("G", 2, 3)}, "train:4": {("G", 2, 4)}},
     {}),
    # SemEval-2010: the number begins again in each sentence, also without a blank line
    ("#begin document 118_c\n" + "".join(
        f"{n}\t{word}\t{word}\t_\tn\t_\tg\t_\t0\t_\t{last}\n"
        for n, word, last in ((1, "Ella", "(1)"), (2, "hi", "_"), (1, "Viu", "(1)"))) + "#end document\n",
     {"118_c": ("118_c", "118_c", ((0, 2), (2, 3)))},
     {"118_c:1": {("118_c", 0, 1), ("118_c", 2, 3)}}, {}),
    # eight columns of another sort
    ("#begin document x\nd 0 0 Fire NN - A (1)\nd 0 1 rages VB - B -\n#end document",
     {"d": ("x", "x", ((0, 2),))}, {"x:1": {("d", 0, 1)}}, {}),
    # a whole corpus in one section, and a splitter of sentences that broke a mention
    ("#begin document test_entities\n" + eight(0, "0_news_1", "A virus/(7) (/(8", "a/8) flu/(7)")
     + eight(0, "0_science_2", "It/(7) spread", "far") + eight(1, "1_news_3", "Rain/(7)"),
     {"0_news_1": ("0", "0_0", ((0, 5),)), "0_science_2": ("0", "0_0", ((0, 2), (2, 3))),
      "1_news_3": ("1", "1_0", ((0, 1),))},
     {"test_entities:7":
      {("0_news_1", 1, 2), ("0_news_1", 4, 5), ("0_science_2", 0, 1), ("1_news_3", 0, 1)},
      "test_entities:8": {("0_news_1", 2, 4)}}, {JOINED: 1}),
    # as NewsWCL50 and MEANTIME: a section for each document, the topic in its name, chains with dashes
    # that go through the topic, a blank behind the bar, a tab at the end of the line
    ("".join(section(name, rows(name, one).replace("|_", "| ").replace("\n", "\t\n")) for name, one in (
        ("0/-/0_L", "Mr./(0_PRK-M_A-I|_(0_T_AC Kim/0_PRK-M_A-I) left/0_T_AC)"),
        ("0/-/0_R", "He/(0_PRK-M_A-I)"), ("1/-/1_L", "She/(0_PRK-M_A-I)"))),
     {"0/-/0_L": ("0", "0/-", ((0, 3),)), "0/-/0_R": ("0", "0/-", ((0, 1),)),
      "1/-/1_L": ("1", "1/-", ((0, 1),))},
     {"0:0_PRK-M_A-I": {("0/-/0_L", 0, 2), ("0/-/0_R", 0, 1)}, "0:0_T_AC": {("0/-/0_L", 0, 3)},
      "1:0_PRK-M_A-I": {("1/-/1_L", 0, 1)}},
     {"chain in two topics, which was taken apart; chains = corpus keeps it": 1}),
    # no sections: one document, named as the file
    (rows("d1", "It/(1)", "She/(1)"), {"d1": ("given", "given", ((0, 1), (1, 2)))},
     {"given:1": {("d1", 0, 1), ("d1", 1, 2)}}, {}),
    # names up to the first "_" are topics if they put documents together, else all are of one
    ("".join(section(name, rows(name, f"It/({name[:2]})")) for name in ("36_a", "36_b", "37_c")),
     {name: (name[:2], name[:2], ((0, 1),)) for name in ("36_a", "36_b", "37_c")},
     {"36:36": {("36_a", 0, 1), ("36_b", 0, 1)}, "37:37": {("37_c", 0, 1)}}, {}),
    ("".join(section(name, rows(name, "It/(it)")) for name in ("one", "two_x")),
     dict.fromkeys(("one", "two_x"), ("train", "train", ((0, 1),))),
     {"train:it": {("one", 0, 1), ("two_x", 0, 1)}}, {}),
])  # fmt: skip
def test_files_of_other_makers(write, text, documents, clusters, counted):
    corpus, passed_over = of_corpus(write("given.conll", text))
    assert {
        document.id: (topic.id, document.subtopic, document.sentences)
        for topic in corpus
        for document in topic.documents
    } == documents
    assert places(corpus) == clusters
    assert passed_over == counted


def test_what_cannot_be_used_is_counted(write):
    text = "# a comment\n#end document\n#begin document (air/1); part 000\n" + rows(
        "air/1",
        "Airbus/(1|(1 parent EADS/1)|1)|(2)",  # the same mention twice
        "It/(3 rose/4) fell/(5 on",  # 3 does not end, 4 does not start
        "so",
        "far/3)",
        "and/(9 away",
    )
    path = write("x.conll", text + "#end document\n#begin document (air/2); part 000\n\n#end document\n")
    corpus, passed_over = of_corpus(path)
    assert places(corpus) == {"air:1": {("air/1", 0, 3)}, "air:2": {("air/1", 2, 3)}}
    assert passed_over == {
        "mention that is there already, in the same chain": 1, "end of a mention that does not start": 1,
        "mention across three sentences or more": 1, "mention that does not end": 2,
    }  # fmt: skip


def test_files_of_one_topic_each_have_numbers_of_their_own(tmp_path):
    files = []
    for topic in topics(
        document((0, 1, "x")),
        document(name="a2"),
        document((0, 1, "y"), (5, 6, "y"), name="b", topic="37"),
        document(name="b2", topic="37"),
    ):
        files.append(tmp_path / f"{topic.id}.conll")
        write_conll(files[-1], [topic], gold_clusters([topic]))
    corpus, passed_over = of_corpus(*files, files[0])
    again = f"corpus at line 1 of {files[1].name}"
    assert {name: len(members) for name, members in places(corpus).items()} == {
        "corpus:1": 1,
        f"{again}:1": 2,
    }
    assert passed_over == {"document that was read already": 2}


BEGIN, END = "#begin document (x); part 000\n", "#end document\n"
TWICE = "document: a comes a second time; keep the lines of a document together"
ROW = "write document, part, number, word and mentions, or number, word and mentions"
NONE = 'write them in the last column, as (1), (1 and 1); "-" is none'
A, B = "a\t0\t0\tIt\t-\n", "b\t0\t0\tIt\t-\n"


@pytest.mark.parametrize(("text", "message"), [
    ("John B-PER\nsmiled O\n\n", f"1: row: a row of 2 columns; {ROW}"),
    (BEGIN + "a\t0\t0\t \t-\n", f"2: row: a row with an empty cell; {ROW}"),
    (BEGIN + A + "a\t0\t1\tIt\tx\n",
     "3: last column: 'x' are no mentions; write (1), (1, 1) or -, with bars between them"),
    (BEGIN + A, f"1: file: no mention in 1 documents; {NONE}"),
    (BEGIN + "9" * 5000 + "\tIt\n", f"2: row: a row of 2 columns; {ROW}"),
    ("#begin document\n", "1: #begin: a document without a name; write #begin document (name); part 000"),
    (BEGIN + A + B + A + END, f"4: {TWICE}"),
    (BEGIN + A + END + BEGIN + A + END, f"5: {TWICE}"),
])  # fmt: skip
def test_files_that_are_refused(write, refused, text, message):
    path = write("given.conll", text)
    with refused(path, message):
        of_corpus(path)


def documents(*chains: str, rows: str = "{d}\t0\t{n}\tword{n}\t({c})\n") -> str:
    """A document for each argument, d_0 to ..., with a mention of each of its chains."""
    text = ""
    for number, names in enumerate(chains):
        name = f"d_{number}"
        body = "".join(rows.format(d=name, n=n, c=chain) for n, chain in enumerate(names.split()))
        text += f"#begin document ({name}); part 000\n{body}\n#end document\n"
    return text


def test_chains_that_may_be_numbered_in_each_document_are_asked_about(write):
    path = write("a.conll", documents("1 2 2", "1 3"))
    asked = r"a\.conll:7: field chains: .*1 is in d_0 and in d_1.*chains.*document, topic or corpus"
    with pytest.raises(DataError, match=asked):
        of_corpus(path)
    sizes = {}
    for way in ("document", "topic", "corpus"):
        corpus, _ = of_corpus(path, chains=way, notes=(notes := []))
        sizes[way] = sorted(len(members) for members in gold_clusters(corpus).values())
        assert way in notes[0]
        assert len(corpus) == (2 if way == "document" else 1)
    assert sizes == {"document": [1, 1, 1, 2], "topic": [1, 2, 2], "corpus": [1, 2, 2]}
    with pytest.raises(ValueError, match=r"^chains is 'all'; choose one of auto, document, topic, corpus$"):
        of_corpus(path, chains="all")


@pytest.mark.parametrize(("text", "expected", "said"), [
    (documents("1 2", "3 4"), [1, 1, 1, 1], "no chain is in two"),
    (documents("HUM17642391151298735 ORG-a", "HUM17642391151298735"), [1, 2], "topic"),
    (documents("9001 1", "9001 2"), [1, 1, 2], "topic"),  # no document of two words has so many chains
    (documents("1 2", "1", rows="{d} 0 {n} w{n} NN * - - - - ({c})\n"), [1, 1, 1], "document"),  # CoNLL-2012
    (documents("1", "1").replace("000", "001"), [1, 1], "document"),  # parts
])  # fmt: skip
def test_how_far_chains_reach_is_decided_where_it_is_safe(write, text, expected, said):
    corpus, lost = of_corpus(write("a.conll", text), notes=(notes := []))
    assert sorted(len(members) for members in gold_clusters(corpus).values()) == expected
    assert (lost, len(notes)) == ({}, 1)
    assert said in notes[0]


def test_files_of_a_corpus(write, tmp_path):
    for name in (
        "train.conll", "dev_events_topic_level.conll", "dev_entities_topic_level.conll", "._dev.conll",
        "test/a/1.v4_gold_conll", "test/b/2_conll", "notes.conll.txt", "other.conll", "test/conll.csv",
    ):  # fmt: skip
        write(name, documents(name[4]).replace("d_0", name))
    found = conll_files(tmp_path)
    assert {split: (name, [file.name for file in files]) for split, (name, files) in found.items()} == {
        "validation": ("dev", ["dev_entities_topic_level.conll", "dev_events_topic_level.conll"]),
        "": ("all", ["other.conll"]),
        "test": ("test", ["1.v4_gold_conll", "2_conll"]),
        "train": ("train", ["train.conll"]),
    }
    for kind, name in (("event", "events"), ("entity", "entities"), (None, "events")):
        (document,) = read_conll(found["validation"], passed_over=PassedOver(), kind=kind)
        assert document.id == f"dev_{name}_topic_level.conll"
    assert conll_files(tmp_path / "other.conll") == {"": ("all", [tmp_path / "other.conll"])}
    assert conll_files(tmp_path / "no") == {}
