"""CoNLL files: what is written, that it comes back, files of other makers, and every message."""

import os
import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.coreference_files import find_conll, read_conll, read_conll_corpus, write_conll
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, PassedOver, Topic, gold_clusters

WORDS = ("Police", "made", "two", "arrests", ".", "They", "left")


def document(
    *mentions: tuple[int, int, str], name: str = "a", topic: str = "36", tokens: tuple[str, ...] = WORDS
) -> CoreferenceDocument:
    """Sentences of five and two tokens; mentions as (start, end, cluster)."""
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
    names = dict.fromkeys(found.topic for found in documents)
    return [Topic(id=name, documents=tuple(d for d in documents if d.topic == name)) for name in names]


def partition(clusters: dict[str, tuple[CoreferenceMention, ...]]) -> set[frozenset[tuple[str, int, int]]]:
    return {frozenset(mention.place for mention in members) for members in clusters.values()}


def test_what_is_written(tmp_path):
    # nested in one cluster, crossing and equal spans of different clusters, a singleton
    one = document((0, 1, "P"), (1, 4, "x"), (2, 4, "P"), (0, 2, "y"), (2, 4, "z"), (1, 5, "x"), (5, 6, "P"))
    two = document((6, 7, "alone"), name="b")
    given_topics = topics(one, two)
    numbers = write_conll(tmp_path / "key.conll", given_topics, gold_clusters(given_topics))
    assert numbers == {"y": 1, "P": 2, "x": 3, "z": 4, "alone": 5}
    rows = [
        "#begin document (36); part 000", "a\t36_ecb\t0\tPolice\t(1|(2)", "a\t36_ecb\t1\tmade\t(3|(3|1)",
        "a\t36_ecb\t2\ttwo\t(2|(4", "a\t36_ecb\t3\tarrests\t4)|2)|3)", "a\t36_ecb\t4\t.\t3)", "",
        "a\t36_ecb\t0\tThey\t(2)", "a\t36_ecb\t1\tleft\t-", "", "b\t36_ecb\t0\tPolice\t-",
        "b\t36_ecb\t1\tmade\t-", "b\t36_ecb\t2\ttwo\t-", "b\t36_ecb\t3\tarrests\t-", "b\t36_ecb\t4\t.\t-", "",
        "b\t36_ecb\t0\tThey\t-", "b\t36_ecb\t1\tleft\t(5)", "", "#end document", "",
    ]  # fmt: skip
    assert (tmp_path / "key.conll").read_bytes().decode() == "\n".join(rows)
    (topic,) = read_conll(tmp_path / "key.conll", kind="event")
    assert [(d.id, d.tokens, d.sentences, d.validated) for d in topic.documents] == [
        ("a", WORDS, ((0, 5), (5, 7)), (0, 1)),
        ("b", WORDS, ((0, 5), (5, 7)), (0, 1)),
    ]
    back = gold_clusters([topic])
    assert partition(back) == partition(gold_clusters(given_topics))
    assert sorted(back) == ["36:1", "36:2", "36:3", "36:4", "36:5"]
    assert {mention.kind for members in back.values() for mention in members} == {"event"}
    assert [(m.tokens, m.sentence) for m in back["36:2"]] == [((0, 1), 0), ((2, 4), 0), ((5, 6), 1)]
    assert [mention.id for mention in back["36:5"]] == ["b:6-7:5"]


SPREAD = [
    document((0, 1, "c"), (1, 2, "c")),
    document((0, 1, "c"), name="b"),
    document((0, 1, "c"), name="d", topic="37"),
]


@pytest.mark.parametrize(
    ("level", "names", "sizes"),
    [("corpus", ["corpus"], [4]), ("topic", ["36", "37"], [3, 1]), ("document", ["a", "b", "d"], [2, 1, 1])],
)
def test_levels(tmp_path, level, names, sizes):
    given_topics = topics(*SPREAD)
    path = tmp_path / "x.conll"
    assert write_conll(path, given_topics, gold_clusters(given_topics), level=level) == {"c": 1}
    back = list(read_conll(path))
    assert [topic.id for topic in back] == names
    assert [found.id for topic in back for found in topic.documents] == ["a", "b", "d"]
    assert {name: len(members) for name, members in gold_clusters(back).items()} == {
        f"{name}:1": size for name, size in zip(names, sizes, strict=True)
    }


def test_response_without_mentions(tmp_path):
    write_conll(tmp_path / "x.conll", iter(topics(SPREAD[0])), {"empty": []})
    (topic,) = read_conll(tmp_path / "x.conll")
    assert [found.mentions for found in topic.documents] == [()]


def test_spurious_mentions(tmp_path):
    """A response may have mentions that the documents do not have."""
    (extra,) = document((2, 5, "new")).mentions
    write_conll(tmp_path / "x.conll", topics(document()), {"new": [extra]})
    (topic,) = read_conll(tmp_path / "x.conll")
    assert partition(gold_clusters([topic])) == {frozenset([("a", 2, 5)])}


SPANS = st.sampled_from(
    [(start, end) for start in range(5) for end in range(start + 1, 6)] + [(5, 6), (5, 7), (6, 7)]
)


@given(st.lists(st.tuples(SPANS, st.sampled_from("abcdefgh")), max_size=14))
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
    given_topics = topics(document(*kept))
    path = tmp_path_factory.mktemp("conll") / "x.conll"
    write_conll(path, given_topics, gold_clusters(given_topics))
    back = list(read_conll(path))
    assert partition(gold_clusters(back)) == partition(gold_clusters(given_topics))
    assert sum(len(d.mentions) for topic in back for d in topic.documents) == len(kept)


@pytest.mark.parametrize(
    ("mentions", "what"),
    [
        ([(0, 2, "c"), (1, 3, "c")], "mention a:0 of document a and a:1 of cluster c cross each other"),
        ([(1, 3, "c"), (0, 2, "c")], "mention a:1 of document a and a:0 of cluster c cross each other"),
        ([(0, 5, "c"), (0, 1, "c"), (0, 1, "c")],
         "mention a:1 of document a and a:2 of cluster c stand in the same place"),
    ],
)  # fmt: skip
def test_mentions_that_brackets_cannot_tell_apart(tmp_path, mentions, what):
    given_topics = topics(document(*mentions))
    with pytest.raises(ValueError, match=f"^{re.escape(what)}; CoNLL cannot say so$"):
        write_conll(tmp_path / "x.conll", given_topics, gold_clusters(given_topics))
    assert list(tmp_path.iterdir()) == []


def test_mentions_that_do_not_fit(tmp_path):
    (mention,) = document((1, 4, "c")).mentions
    path = tmp_path / "x.conll"
    with pytest.raises(
        ValueError, match=r"^mention a:0 of document a: the topics to be written have no such doc"
    ):
        write_conll(path, topics(document(name="b")), {"c": [mention]})
    with pytest.raises(ValueError, match=r"^mention a:0 of document a is in the clusters c and d$"):
        write_conll(path, topics(document()), {"c": [mention], "d": [mention]})
    short = CoreferenceDocument(
        id="a", topic="36", subtopic="x", tokens=("Rain",), sentences=((0, 1),), validated=()
    )
    with pytest.raises(
        ValueError, match=r"^mention a:0 of document a: its tokens \(1, 4\) lie outside: the doc"
    ):
        write_conll(path, topics(short), {"c": [mention]})
    assert not path.exists()


def test_arguments_that_cannot_be(tmp_path, refused):
    with pytest.raises(ValueError, match=r"^level is 'topics'; choose one of corpus, topic, document$"):
        write_conll(tmp_path / "x", [], {}, level="topics")
    for none in ([], [*topics(document()), *topics(document())]):
        with pytest.raises(
            ValueError, match=r"^two documents of one id, or none at all; give each topic once$"
        ):
            write_conll(tmp_path / "x", none, {})
    with refused(tmp_path / "no" / "x", "1: folder: there is no such folder to write to; make it first"):
        write_conll(tmp_path / "no" / "x", topics(document()), {})
    with pytest.raises(ValueError, match=r"^kind is 'entities'; choose one of event, entity$"):
        list(read_conll(_file(tmp_path, "#begin document x\na\t(1)\n#end document\n"), kind="entities"))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"tokens": ("a\tb", *WORDS[1:])}, "token 0 of document a 'a\\tb'"),
        ({"tokens": (*WORDS[:6], "a\nb")}, "token 6 of document a 'a\\nb'"),
        ({"name": "#a"}, "document '#a'"),
        ({"name": "a\rb"}, "document 'a\\rb'"),
        ({"topic": "3\n6"}, "name '3\\n6'"),
    ],
)
def test_text_that_would_break_the_file(tmp_path, changes, what):
    message = f"^{re.escape(what)} cannot stand in a CoNLL file: empty, a tab, a line break or a #$"
    with pytest.raises(ValueError, match=message):
        write_conll(tmp_path / "x", topics(document(**changes)), {})


def test_words_with_spaces_come_back(tmp_path):
    tokens = ("7\u2009½", "a b", "#", "(1)", "-", "\u2028x", "\ufeff!")
    write_conll(
        tmp_path / "x",
        topics(document((3, 4, "c"), tokens=tokens)),
        gold_clusters(topics(document((3, 4, "c")))),
    )
    (topic,) = read_conll(tmp_path / "x")
    assert topic.documents[0].tokens == tokens


def test_the_file_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "x.conll"
    path.write_text("before")

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_conll(path, topics(document()), {})
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("x.conll", "before")]


def _file(folder, text: str):
    path = folder / "given.conll"
    path.write_text(text, encoding="utf-8")
    return path


def test_files_of_the_shared_task(tmp_path):
    row = "bc/x/01 {part} {number} {word} NN * - - - - {mentions}\n"
    words = [
        ("I", "(0)"), ("saw", "-"), ("her", "(12|(3)"), ("car", "12)"), None, ("She", "(3)|(0"),
        ("left", "0)"),
    ]  # fmt: skip
    text = ""
    for part in (0, 1):
        text += f"#begin document (bc/x/01); part 00{part}\n"
        for number, word in enumerate(words):
            text += row.format(part=part, number=number, word=word[0], mentions=word[1]) if word else "\n"
        text += "\n#end document\n"
    first, second = read_conll(_file(tmp_path, text))
    assert (first.id, second.id) == ("bc/x/01", "bc/x/01/1")
    assert [found.id for found in second.documents] == ["bc/x/01/1"]
    assert second.documents[0].subtopic == "bc/x/01/1"
    (found,) = first.documents
    assert found.tokens == ("I", "saw", "her", "car", "She", "left")
    assert found.sentences == ((0, 4), (4, 6))
    assert [(m.cluster, m.tokens, m.sentence) for m in found.mentions] == [
        ("bc/x/01:0", (0, 1), 0), ("bc/x/01:3", (2, 3), 0), ("bc/x/01:12", (2, 4), 0),
        ("bc/x/01:3", (4, 5), 1), ("bc/x/01:0", (4, 6), 1),
    ]  # fmt: skip
    assert {mention.kind for mention in found.mentions} == {"entity"}
    assert len(gold_clusters([first, second])) == 6


def test_files_of_two_columns(tmp_path):
    text = "#begin document (all); part 000\nall\t(1)\nall\t_\n\nall\t(2\nall\t2)\n#end document"
    (topic,) = read_conll(_file(tmp_path, text))
    assert topic.documents[0].tokens == ("_", "_", "_", "_")
    assert [(m.cluster, m.tokens) for m in topic.documents[0].mentions] == [
        ("all:1", (0, 1)),
        ("all:2", (2, 4)),
    ]


def test_files_of_the_papers_code(tmp_path):
    rows = [
        "36\t36_0\t36_1ecb.xml\t3\t41\tFire\tTrue\t(7)|(8",
        "36\t36_0\t36_1ecb.xml\t3\t42\tbroke out\tTrue\t8)",
        "36\t36_0\t36_1ecb.xml\t5\t60\tIt\tTrue\t(7)",
        "36\t36_0\t36_2ecb.xml\t5\t60\tfire\tFalse\t(7)",
    ]
    text = "\n".join(["#begin document test_events", *rows, "#end document"])
    (topic,) = read_conll(_file(tmp_path, text))
    one, two = topic.documents
    assert (topic.id, one.id, two.id) == ("test_events", "36_1ecb.xml", "36_2ecb.xml")
    assert (one.tokens, one.sentences) == (("Fire", "broke out", "It"), ((0, 2), (2, 3)))
    assert (two.tokens, two.sentences) == (("fire",), ((0, 1),))
    assert {name: len(members) for name, members in gold_clusters([topic]).items()} == {
        "test_events:7": 3,
        "test_events:8": 1,
    }


def test_eight_columns_of_another_sort(tmp_path):
    text = "#begin document x\nd 0 0 Fire NN - A (1)\nd 0 1 rages VB - B -\n#end document"
    (topic,) = read_conll(_file(tmp_path, text))
    assert [(found.id, found.tokens) for found in topic.documents] == [("d", ("Fire", "rages"))]


def places(topics: list[Topic]) -> dict[str, set[tuple[str, int, int]]]:
    """Name of a cluster -> where its mentions are."""
    return {name: {mention.place for mention in members} for name, members in gold_clusters(topics).items()}


def of_corpus(*files: Path, kind: str = "entity") -> tuple[list[Topic], dict[str, int]]:
    """Topics, and how often what was passed over."""
    passed_over = PassedOver()
    found = read_conll_corpus(files, kind=kind, name="train", passed_over=passed_over)
    return found, {reason: count for reason, (count, _) in passed_over.counts.items()}


def rows(name: str, *sentences: str, form: str = "{name}\t{sentence}\t{token}\t{word}\t{mentions}\n") -> str:
    """Rows of a document: words with their mentions after a slash, an empty line after each sentence."""
    text = ""
    for sentence, words in enumerate(sentences):
        for token, word in enumerate(words.split()):
            word, _, mentions = word.partition("/")
            text += form.format(
                name=name, sentence=sentence, token=token, word=word, mentions=mentions or "-"
            )
        text += "\n"
    return text


def test_a_corpus_in_one_section_with_eight_columns(tmp_path):
    """As CD2CR: topics in the first column, no empty lines, and a splitter of sentences that broke a
    mention."""
    form = "{topic}\t{topic}_0\t{name}\t{sentence}\t{token}\t{word}\tTrue\t{mentions}\n"
    text = "#begin document test_entities\n"
    for topic, name, sentences in (
        (0, "0_news_1", ["A virus/(7) (/(8", "a/8) flu/(7)"]),
        (0, "0_science_2", ["It/(7) spread"]),
        (1, "1_news_3", ["Rain/(7)"]),
    ):
        text += rows(name, *sentences, form=form.replace("{topic}", str(topic))).replace("\n\n", "\n")
    found, passed_over = of_corpus(_file(tmp_path, text + "#end document"))
    assert [(t.id, [d.id for d in t.documents]) for t in found] == [
        ("0", ["0_news_1", "0_science_2"]),
        ("1", ["1_news_3"]),
    ]
    assert found[0].documents[0].subtopic == "0_0"
    assert found[0].documents[0].sentences == ((0, 5),), "the sentences with a mention across them are one"
    assert passed_over == {"mention across two sentences, which were joined": 1}
    assert places(found) == {
        "test_entities:7": {
            ("0_news_1", 1, 2), ("0_news_1", 4, 5), ("0_science_2", 0, 1), ("1_news_3", 0, 1)
        },
        "test_entities:8": {("0_news_1", 2, 4)},
    }  # fmt: skip


def test_a_corpus_with_a_section_for_each_document(tmp_path):
    """As NewsWCL50 and MEANTIME: the topic in the name, chains with dashes that go through its documents, a
    blank behind the bar, a tab at the end of the line, a header without brackets."""
    text = ""
    for name, words in (
        ("0/-/0_L", "Mr./(0_PRK-Misc_ACTOR-I|_(0_Trip_ACTION Kim/0_PRK-Misc_ACTOR-I) left/0_Trip_ACTION)"),
        ("0/-/0_R", "He/(0_PRK-Misc_ACTOR-I)"),
        ("1/-/1_L", "She/(0_PRK-Misc_ACTOR-I)"),
    ):
        lines = rows(name, words).replace("|_", "| ").replace("\n", "\t\n")
        text += f"#begin document {name}; part 000\n{lines}#end document\n"
    found, passed_over = of_corpus(_file(tmp_path, text))
    assert [(t.id, [(d.id, d.subtopic) for d in t.documents]) for t in found] == [
        ("0", [("0/-/0_L", "0/-"), ("0/-/0_R", "0/-")]),
        ("1", [("1/-/1_L", "1/-")]),
    ]
    assert places(found) == {
        "0:0_PRK-Misc_ACTOR-I": {("0/-/0_L", 0, 2), ("0/-/0_R", 0, 1)},
        "0:0_Trip_ACTION": {("0/-/0_L", 0, 3)},
        "1:0_PRK-Misc_ACTOR-I": {("1/-/1_L", 0, 1)},
    }
    assert passed_over == {}


def test_what_cannot_be_used_is_counted(tmp_path):
    text = "# a comment\n#begin document (air/1); part 000\n" + rows(
        "air/1",
        "Airbus/(1|(1 parent EADS/1)|1)|(2)",  # the same mention twice
        "It/(3 rose/4) fell/(5)|7 and/(1)",  # 3 does not end, 4 does not start, no mentions in the fifth
        "so",
        "far/3)",
    )
    text += "air/1\n" + "\n#end document\n#begin document (air/2); part 000\n\n#end document\n"
    found, passed_over = of_corpus(_file(tmp_path, text + "#begin document (air/3); part 000\nair/3\t(1)\n"))
    assert places(found) == {
        "air:1": {("air/1", 0, 3), ("air/1", 6, 7), ("air/3", 0, 1)},
        "air:2": {("air/1", 2, 3)},
    }
    assert passed_over == {
        "mention that is there already, in the same chain": 1, "end of a mention that does not start": 1,
        "last column that holds no mentions": 1, "mention across three sentences or more": 1,
        "row of one column": 1, "section without tokens": 1, "section without #end document": 1,
    }  # fmt: skip


def test_chains_of_the_shared_task_end_with_the_document(tmp_path):
    row = "{name}\t0\t{token}\t{word}\tNN\t*\t-\t-\t-\t*\t*\t{mentions}\n"
    text = "".join(
        f"#begin document ({name}); part 000\n{rows(name, 'It/(0)', form=row)}#end document\n"
        for name in ("bc/x/1", "bc/x/2")
    )
    found, _ = of_corpus(_file(tmp_path, text))
    assert places(found) == {"bc/x/1:0": {("bc/x/1", 0, 1)}, "bc/x/2:0": {("bc/x/2", 0, 1)}}
    assert len(found) == 2


def test_topics_by_name_and_documents_of_several_files(tmp_path):
    """Names up to the first "_" are topics if they put documents together; else all are one."""
    text = {}
    for names in (("36_a", "36_b", "37_c"), ("one", "two_x")):
        text[names] = "".join(
            f"#begin document {name}\n{rows(name, 'It/(1)')}#end document\n" for name in names
        )
        found, _ = of_corpus(_file(tmp_path, text[names]))
        expected = {"36": 2, "37": 1} if "36_a" in names else {"train": 2}
        assert {topic.id: len(topic.documents) for topic in found} == expected
        assert {name: len(members) for name, members in places(found).items()} == {
            f"{topic}:1": size for topic, size in expected.items()
        }
    # and the files that write_conll makes of topics, each with numbers of its own
    files = []
    for topic in topics(document((0, 1, "x")), document((0, 1, "y"), (5, 6, "y"), name="b", topic="37")):
        files.append(tmp_path / f"{topic.id}.conll")
        write_conll(files[-1], [topic], gold_clusters([topic]))
    found, passed_over = of_corpus(*files, files[0])
    assert {name: len(members) for name, members in places(found).items()} == {"36:1": 1, "37:1": 2}
    assert passed_over == {"document that was read already": 1}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("John B-PER\nsmiled O\n\n", r"no mention in 2 documents \(rows without #begin document"),
        ("#begin document x\nx\t-\n#end document", r"no mention in 1 documents; write them in the last"),
    ],
)
def test_files_without_mentions_are_refused(tmp_path, text, what):
    with pytest.raises(DataError, match=rf"given\.conll:1: field file: {what}"):
        of_corpus(_file(tmp_path, text))


def test_rows_without_sections_are_one_document(tmp_path):
    found, passed_over = of_corpus(_file(tmp_path, rows("d1", "It/(1)", "She/(1)")))
    assert places(found) == {"given:1": {("d1", 0, 1), ("d1", 1, 2)}}
    assert passed_over == {"rows without #begin document, which are one document": 1}


def test_files_of_a_corpus(tmp_path):
    for name in (
        "train.conll", "dev_events_topic_level.conll", "dev_entities_topic_level.conll",
        "test/a/1.v4_gold_conll", "test/b/2_conll", "notes.conll.txt", "other.conll", "test/conll.csv",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    files = find_conll(tmp_path, "event")
    found = {split: [file.name for file in of_split] for split, of_split in files.items()}
    assert found == {
        "train": ["train.conll"],
        "dev": ["dev_events_topic_level.conll"],
        "test": ["1.v4_gold_conll", "2_conll"],
        "": ["other.conll"],
    }
    assert find_conll(tmp_path, "entity")["dev"][0].name == "dev_entities_topic_level.conll"
    assert find_conll(tmp_path / "other.conll", "event") == {"": [tmp_path / "other.conll"]}
    assert find_conll(tmp_path / "no", "event") == {}


# Gold of Barhom et al. (2019), one token a mention: clusters and mentions of the test split.
@pytest.mark.parametrize(("kind", "sizes"), [("event", (805, 1780)), ("entity", (608, 2055))])
def test_counts_of_a_real_file(real_data, tmp_path, kind, sizes):
    with tarfile.open(real_data("ecbplus") / "barhom2019_mentions.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (path,) = tmp_path.rglob(f"CD_test_{kind}_mention_based.key_conll")
    (topic,) = read_conll(path, kind=kind)
    clusters = gold_clusters([topic])
    assert (len(clusters), sum(map(len, clusters.values()))) == sizes


BEGIN = "#begin document (x); part 000\n"
END = "#end document\n"
COLUMN = 'write "-", or mentions as (1), (1 and 1), with | between them'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n \nx\t-\n", "4: row: a line outside of a document; write #begin document above it"),
        (BEGIN + "a\t-\n" + END + "a\t-\n",
         "4: row: a line outside of a document; write #begin document above it"),
        (BEGIN + "a\t-\n" + BEGIN, "1: #begin: x does not end; write #end document"),
        ("\n" + BEGIN + "a\t-\n", "2: #begin: x does not end; write #end document"),
        (END, "1: #end: no document has begun; remove the line"),
        (BEGIN + "a\t-\n" + END + END, "4: #end: no document has begun; remove the line"),
        (BEGIN + "\n" + END, "1: #begin: x has no tokens; remove it"),
        ("#begin document\n", "1: #begin: a document without a name; write #begin document (name); part 000"),
        (BEGIN + "a\n" + END, "2: row: one column; write at least a document and its mentions"),
        (BEGIN + "a\t0\t0\t \t-\n" + END, "2: row: an empty cell; write a document and a word"),
        (BEGIN + "\t0\t0\tx\t-\n" + END, "2: row: an empty cell; write a document and a word"),
        (BEGIN + "a\t0\t0\tx\t-\na\t0\t1\ty\t(1)|\n" + END, f"3: column 5: '(1)|' is none; {COLUMN}"),
        (BEGIN + "a\t(1)x\n" + END, f"2: column 2: '(1)x' is none; {COLUMN}"),
        (BEGIN + "a\t7\n" + END, f"2: column 2: '7' is none; {COLUMN}"),
        (BEGIN + "a\t()\n" + END, f"2: column 2: '()' is none; {COLUMN}"),
        (BEGIN + "a\tACT123\n" + END, f"2: column 2: 'ACT123' is none; {COLUMN}"),
        (BEGIN + "# a comment\n" + END, f"2: column 3: 'comment' is none; {COLUMN}"),
        (BEGIN + "a\t1)\n" + END, "2: column 2: 1) ends no mention; write (1 where it starts"),
        (BEGIN + "a\t(1\na\t1)\na\t1)\n" + END, "4: column 2: 1) ends no mention; write (1 where it starts"),
        (BEGIN + "a\t(1\na\t(2\na\t1)\n\na\tx\t-\n" + END,
         "3: last column: the mention (2 does not end in its document; write 2) where it ends"),
        (BEGIN + "a\t(1\n\na\t-\n\na\t1)\n" + END,
         "6: column 2: the mention of 1 goes across three sentences; end it in the first"),
        (BEGIN + "a\t(1\n" + END,
         "2: last column: the mention (1 does not end in its document; write 1) where it ends"),
        (BEGIN + "a\t(1\nb\t1)\n" + END,
         "2: last column: the mention (1 does not end in its document; write 1) where it ends"),
        (BEGIN + "a\t-\na\t(1)|(1)\n" + END,
         "3: column 2: the mention of 1 from token 1 comes a second time; write it once"),
        (BEGIN + "a\t-\nb\t-\na\t-\n" + END,
         "4: document: a comes a second time; keep the lines of a document together"),
        (BEGIN + "a\t-\n" + END + BEGIN + "a\t-\n" + END,
         "5: document: a comes a second time; keep the lines of a document together"),
        ("\n", "1: file: the file is empty; fill it, or take it out of the corpus"),
    ],
)  # fmt: skip
def test_malformed_lines(write, refused, text, message):
    path = write("x.conll", text)
    with refused(path, message):
        list(read_conll(path))
