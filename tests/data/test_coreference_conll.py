"""CoNLL files: what is written, that it comes back, files of other makers, and every complaint."""

import os
import re
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.coreference_conll import read_conll, write_conll
from cdlm_lab.data.coreference_records import CoreferenceDocument, CoreferenceMention, Topic, gold_clusters

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
        "#begin document (36); part 000",
        "a\t36_ecb\t0\tPolice\t(1|(2)",
        "a\t36_ecb\t1\tmade\t(3|(3|1)",
        "a\t36_ecb\t2\ttwo\t(2|(4",
        "a\t36_ecb\t3\tarrests\t4)|2)|3)",
        "a\t36_ecb\t4\t.\t3)",
        "",
        "a\t36_ecb\t0\tThey\t(2)",
        "a\t36_ecb\t1\tleft\t-",
        "",
        "b\t36_ecb\t0\tPolice\t-",
        "b\t36_ecb\t1\tmade\t-",
        "b\t36_ecb\t2\ttwo\t-",
        "b\t36_ecb\t3\tarrests\t-",
        "b\t36_ecb\t4\t.\t-",
        "",
        "b\t36_ecb\t0\tThey\t-",
        "b\t36_ecb\t1\tleft\t(5)",
        "",
        "#end document",
        "",
    ]
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
        (
            [(0, 5, "c"), (0, 1, "c"), (0, 1, "c")],
            "mention a:1 of document a and a:2 of cluster c stand in the same place",
        ),
    ],
)
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


def test_arguments_that_cannot_be(tmp_path, complains):
    with pytest.raises(ValueError, match=r"^level is 'topics'; choose one of corpus, topic, document$"):
        write_conll(tmp_path / "x", [], {}, level="topics")
    for none in ([], [*topics(document()), *topics(document())]):
        with pytest.raises(
            ValueError, match=r"^two documents of one id, or none at all; give each topic once$"
        ):
            write_conll(tmp_path / "x", none, {})
    with complains(
        tmp_path / "no" / "x", 1, "folder", "there is no such folder to write to", "make it first"
    ):
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
        ("I", "(0)"),
        ("saw", "-"),
        ("her", "(12|(3)"),
        ("car", "12)"),
        None,
        ("She", "(3)|(0"),
        ("left", "0)"),
    ]
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
        ("bc/x/01:0", (0, 1), 0),
        ("bc/x/01:3", (2, 3), 0),
        ("bc/x/01:12", (2, 4), 0),
        ("bc/x/01:3", (4, 5), 1),
        ("bc/x/01:0", (4, 6), 1),
    ]
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


# Gold of Barhom et al. (2019), one token a mention: clusters and mentions of the test split.
@pytest.mark.parametrize(("kind", "sizes"), [("event", (805, 1780)), ("entity", (608, 2055))])
def test_counts_of_a_real_file(real_data, tmp_path, kind, sizes):
    with tarfile.open(real_data("ecbplus") / "barhom2019_mentions.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (path,) = tmp_path.rglob(f"CD_test_{kind}_mention_based.key_conll")
    (topic,) = read_conll(path, kind=kind)
    clusters = gold_clusters([topic])
    assert (len(clusters), sum(map(len, clusters.values()))) == sizes
