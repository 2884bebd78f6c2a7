"""CorefUD: nested, discontinuous and empty mentions, types, documents of a file; and without Udapi."""

import builtins

import pytest

from cdlm_lab.data.convert.corefud import PIECES, corefud_files, read_corefud
from cdlm_lab.data.coreference import topics_of
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import PassedOver

pytest.importorskip("udapi", reason="until the extra corefud is installed")
HEAD = "# newdoc id = {name}\n# global.Entity = eid-etype-head-other\n"


def sentence(*words: str) -> str:
    """Rows of words, each with its entities after a slash; one that begins with ~ is not there."""
    rows, number = [], 0
    for count, word in enumerate(words):
        form, _, entity = word.partition("/")
        number += not form.startswith("~")
        name = f"{number}.1" if form.startswith("~") else str(number)
        head = "_" if "." in name else str(int(count > 0))
        misc = f"Entity={entity}" if entity else "_"
        rows.append(f"{name}\t{form.strip('~')}\t_\t_\t_\t_\t{head}\tdep\t_\t{misc}\n")
    return "".join(rows) + "\n"


def read(path, kind=None):
    passed_over = PassedOver()
    documents = list(read_corefud(("test", [path]), passed_over=passed_over, kind=kind))
    return documents, {reason: count for reason, (count, _) in passed_over.counts.items()}


def mentions(document):
    return [(document.text_of(one), one.kind, one.tag, one.cluster) for one in document.mentions]


MILL = sentence(
    "Ann/(e1-person-1(e1-person-1", "did/e1)", "n't", "leave/(e2[1/2]-event-1)", "~/(e3-person-1)",
    "it/(e4--1)", "alone/(e2[2/2]-event-1)e1)",
)  # fmt: skip


def test_nested_discontinuous_and_empty_mentions_of_several_documents(write):
    text = HEAD.format(name="a") + MILL + sentence("She/(e1-person-1)", "fell/(e5-event-1)")
    text += "# newdoc id = b\n" + sentence("Nobody/(e9-person-1)")
    first, second = (documents := read(write("test.conllu", text)))[0]
    assert mentions(first) == [
        ("Ann did", "entity", "person", "e1"), ("Ann did n't leave it alone", "entity", "person", "e1"),
        ("leave it alone", "event", "", "e2"), ("it", "entity", "", "e4"),
        ("She", "entity", "person", "e1"), ("fell", "event", "", "e5"),
    ]  # fmt: skip
    assert documents[1] == {PIECES: 1, "mention of words that are not there alone": 1}
    assert (first.id, first.topic, first.sentences) == ("a", "a", ((0, 6), (6, 8)))
    assert (second.id, second.topic, second.tokens) == ("b", "b", ("Nobody",))
    (only_events, _), _ = read(write("test.conllu", text), kind="event")
    assert [one.kind for one in only_events.mentions] == ["event", "event"]


def test_an_entity_in_two_documents_makes_them_a_topic(write):
    two = sentence("He/(e1)"), sentence("She/(e1)")
    heads = HEAD.format(name="a"), "# newdoc id = b\n"
    text = "".join(head + rows for head, rows in zip(heads, two, strict=True))
    (topic,) = topics_of(read(write("test.conllu", text))[0], "x")
    assert (topic.id, [one.id for one in topic.documents]) == ("test", ["a", "b"])
    # with GRP in place of eid, names begin again in each document
    assert [one.topic for one in read(write("test.conllu", text.replace("= eid-", "= GRP-")))[0]] == [
        "a",
        "b",
    ]
    named = text.replace("id = a\n", "id = a\n# meta::topic = 3 6\n")
    assert [one.topic for one in read(write("test.conllu", named))[0]] == ["3 6", "test"]


def test_what_is_lost_is_counted_and_not_printed(write, capsys):
    text = HEAD.format(name="a") + sentence("A/(e1-person-1", "b/(e2-place-1)", "c/(e2-thing-1)")
    (document,), counted = read(write("test.conllu", text))
    assert [one[0] for one in mentions(document)] == ["b", "c"]
    assert counted == {
        "mention that does not end": 1,
        "mention of another type than its entity, whose first type counts": 1,
    }
    assert "".join(capsys.readouterr()) == ""


def test_line_ends_and_names_of_files(write, tmp_path):
    text = (HEAD.format(name="a") + sentence("A/(e1)")).replace("\n", "\r\n")
    write("en_x-corefud-train.conllu", text)
    write("en_x-corefud-dev.conllu.gz", text.strip())
    found = corefud_files(tmp_path)
    assert sorted(found) == ["train", "validation"]
    assert read(found["train"][1][0]) == read(found["validation"][1][0])


@pytest.mark.parametrize(("text", "message"), [
    (sentence("A", "b"), "no mention in 1 documents"), (sentence("A/(e1[2/3])"), "Udapi cannot read it"),
    ("1\tA\t_\t_\t_\t_\t7\tdep\t_\t_\n", "Udapi cannot read it"), ("one line", "Udapi cannot read it"),
])  # fmt: skip
def test_what_cannot_be_read_is_one_line(write, text, message):
    with pytest.raises(DataError, match=message) as error:
        read(write("test.conllu", text))
    assert "\n" not in str(error.value)


def test_without_udapi_the_extra_is_named(write, monkeypatch):
    original = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("udapi"):
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataError, match=r'needs the package udapi; install the extra "corefud"'):
        read(write("test.conllu", sentence("A/(e1)")))
