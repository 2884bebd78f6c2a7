"""Clusters that are saved come in again equal, in every format; what a format cannot say is one line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdlm_lab.batch.command import main
from cdlm_lab.data.convert.written import ENDINGS, save_clusters
from cdlm_lab.data.marked import marked_texts, unmarked
from cdlm_lab.data.reading import open_records
from cdlm_lab.data.records import characters, gold_clusters
from cdlm_lab.parameters import ParameterError

pytest.importorskip("udapi", reason="until the extra corefud is installed")
WORDS = [
    "fire",
    "It's",
    "O'Brien",
    "_",
    "-",
    "(1)",
    "e1)",
    "#",
    "\u00e9t\u00e9",
    "火事",
    "\u0646\u0627\u0631",
    "🔥",
    "a|b=c",
    "x\u00ad y",
]


def read(path):
    return [document for one in open_records("coreference", path).splits.values() for document in one()]


def partition(documents):
    found = {}
    for document in documents:
        for one in document.mentions:
            found.setdefault((one.cluster, one.kind), set()).add(one.place)
    return sorted(map(sorted, found.values()))


def topic_of(texts, clusters):
    """The topic of marked texts, whose mentions are of `clusters`, in order."""
    topic = marked_texts(texts, kind="event", needs_marks=False)
    mentions = [one for document in topic.documents for one in document.mentions]
    named = {}
    for one, cluster in zip(mentions, clusters, strict=False):
        named.setdefault(cluster, []).append(one)
    return topic, named


@st.composite
def marked(draw):
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
    ends = draw(st.lists(st.integers(0, 3), min_size=len(words), max_size=len(words)))
    text, still_open = "", 0
    for word, end in zip(words, ends, strict=True):
        opened = draw(st.booleans()) and not text.endswith("<m>")
        text += f"{'<m>' if opened else ''}{word}"
        still_open += opened
        closed = min(end, still_open, 1)
        text += "</m>" * closed + draw(st.sampled_from([" ", " ", ". ", "\n"]))
        still_open -= closed
    return text.rstrip() + "</m>" * still_open


def is_possible(named):
    spans = [(one.place, one.tokens, name) for name, some in named.items() for one in some]
    return not any(
        a[2] == b[2] and a[0][0] == b[0][0] and a[1] == b[1] for i, a in enumerate(spans) for b in spans[:i]
    )


@settings(max_examples=25)
@given(st.lists(marked(), min_size=1, max_size=3), st.lists(st.sampled_from("abc"), min_size=30, max_size=30))
def test_what_is_saved_comes_in_again(tmp_path_factory, texts, clusters):
    named_texts = {f"text {number}": text for number, text in enumerate(texts)}
    try:
        topic, named = topic_of(named_texts, clusters)
    except ValueError:  # two marks around the same words
        return
    if not named or not is_possible(named):
        return
    folder = tmp_path_factory.mktemp("saved")
    expected = sorted(sorted(one.place for one in some) for some in named.values())
    for ending in ENDINGS:
        save_clusters(folder / f"x{ending}", [topic], named, texts=named_texts)
        back = read(folder / f"x{ending}")
        assert partition(back) == expected
        assert [one.sentences for one in back] == [one.sentences for one in topic.documents]
        if ending in (".conll", ".conllu"):
            assert [one.tokens for one in back] == [one.tokens for one in topic.documents]
        if ending == ".conllu":
            assert {one.kind for document in back for one in document.mentions} == {"event"}


def test_rows_have_the_characters_of_the_text_without_marks(tmp_path):
    text = "The <m>fire at <M>O'Brien</M>'s</m>.\n\nIt\u00adself."
    topic, named = topic_of({"a": text}, "xy")
    save_clusters(tmp_path / "x.jsonl", [topic], named, texts={"a": text})
    (document,) = read(tmp_path / "x.jsonl")
    plain, _ = unmarked(text)
    assert plain == "The fire at O'Brien's.\n\nIt\u00adself."
    spans = [characters(document.offsets, *one.tokens) for one in document.mentions]
    assert [plain[start:end] for start, end in spans] == ["fire at O'Brien's", "O'Brien"]


def test_a_corpus_goes_out_as_any_of_them(tmp_path, capsys):
    topic, named = topic_of({"a": "A <m>fire</m> and <m>it</m>.", "b": "The <m>blaze</m>."}, "xyx")
    save_clusters(tmp_path / "in.conll", [topic], named)
    for ending in ENDINGS:
        out = tmp_path / f"out{ending}"
        assert main(["convert", "coreference", str(tmp_path / "in.conll"), str(out)]) == 0
        assert partition(read(out)) == [[("a", 1, 2), ("b", 1, 2)], [("a", 3, 4)]]
        assert [one.tokens for one in read(out)] == [one.tokens for one in topic.documents]
    assert "out.json: 2 documents" in capsys.readouterr().out


def test_what_cannot_be_saved_is_one_line(tmp_path):
    topic, _ = topic_of({"a\tb": "A <m><m>fire</m> now</m>."}, "xx")
    clusters = gold_clusters([topic])
    for name, message in (
        ("x.csv", "name a file .conll"),
        ("x.conll", "cannot stand"),
        ("x.conllu", "cannot stand"),
    ):
        with pytest.raises(ParameterError, match=message):
            save_clusters(tmp_path / name, [topic], clusters)
    assert list(tmp_path.iterdir()) == []
