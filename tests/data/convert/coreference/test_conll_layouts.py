"""CoNLL files of many makers: where words stand, how far chains reach; and what is lost is said."""

import unicodedata
from pathlib import Path

import pytest

from cdlm_lab.data.convert.conll_layout import cells_of, layout_of
from cdlm_lab.data.convert.coreference_files import read_conll_corpus
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import PassedOver, Topic, gold_clusters

Read = tuple[list[Topic], dict[str, int], list[str]]


def read(*files: Path, chains: str = "auto") -> Read:
    """Read a corpus; return its topics, the number of losses by reason, and what is said about chains."""
    counted = PassedOver()
    topics = read_conll_corpus(files, kind="entity", name="all", passed_over=counted, chains=chains)
    return topics, {reason: count for reason, (count, _) in counted.counts.items()}, counted.notes


def words_of(topics: list[Topic]) -> dict[str, str]:
    """Document -> its words, with "/" between sentences."""
    return {
        one.id: " / ".join(" ".join(one.tokens[start:end]) for start, end in one.sentences)
        for topic in topics
        for one in topic.documents
    }


def chains_of(topics: list[Topic]) -> set[frozenset[str]]:
    """Each chain as the words of its mentions, with their documents."""
    documents = {one.id: one for topic in topics for one in topic.documents}
    return {
        frozenset(f"{one.document}: {documents[one.document].text_of(one)}" for one in members)
        for members in gold_clusters(topics).values()
    }


def chains(*members: str) -> set[frozenset[str]]:
    return {frozenset(one.split("; ")) for one in members}


# Three columns as in GUM: a number that runs through the document, a word, mentions without bars between.
GUM_LIKE = """\
# begin document GUM_voyage_harbour
1\tThe\t(2
2\told\t_
3\tharbour\t_
4\tof\t_
5\tTelk\t(3)2)
6\tand\t_
7\tits\t(4(3)
8\tfishing\t_
9\tfleet\t4)
10\t,\t_
11\twhich\t(4)
12\t10\t_
13\tstorms\t(5)
14\tspared\t_
15\t.\t_

16\tIt\t(2)
17\tsleeps\t_
18\t.\t_
# end document
"""

# SemEval-2010: the number begins again in each sentence, the word is in column 2, mentions in the last.
SEMEVAL_ROW = "{n}\t{word}\t{word}\t_\tn\t_\tgen=m\t_\t0\t_\tsentence\t_\t_\t_\t_\t_{more}\t{last}\n"
CATALAN = (
    ("L'|(1", "alcaldessa|_", "de|_", "Telk|(2)|1)", "va|_", "dir|_", "que|_", "la|(3",
     "seva|(1)", "ciutat|3)", ".|_"),
    ("Ella|(1)", "hi|(2)", "viu|_", ".|_"),
)  # fmt: skip


def semeval(name: str) -> str:
    text = f"#begin document {name}\n"
    for number, sentence in enumerate(CATALAN):
        for n, cell in enumerate(sentence, start=1):
            word, _, last = cell.partition("|")
            text += SEMEVAL_ROW.format(n=n, word=word, last=last, more="\t_" * number)
        text += "\n"
    return f"{text}#end document {name}\n"


def test_a_token_number_that_runs_through_the_document(write):
    topics, lost, _ = read(write("a.conll", GUM_LIKE))
    words = "The old harbour of Telk and its fishing fleet , which 10 storms spared . / It sleeps ."
    assert words_of(topics) == {"GUM_voyage_harbour": words}
    name = "GUM_voyage_harbour: "
    assert chains_of(topics) == chains(
        f"{name}The old harbour of Telk; {name}It", f"{name}Telk; {name}its",
        f"{name}its fishing fleet; {name}which", f"{name}storms",
    )  # fmt: skip
    assert lost == {}


def test_a_token_number_that_begins_again_in_each_sentence(write):
    topics, lost, notes = read(write("a.conll", semeval("118_c1") + semeval("119_c2")))
    text = "L' alcaldessa de Telk va dir que la seva ciutat . / Ella hi viu ."
    assert words_of(topics) == {"118_c1": text, "119_c2": text}
    assert [topic.id for topic in topics] == ["118_c1", "119_c2"]
    assert chains_of(topics) == chains(*(
        line.replace("@", f"{name}: ") for name in ("118_c1", "119_c2") for line in (
            "@L' alcaldessa de Telk; @seva; @Ella", "@Telk; @hi", "@la seva ciutat")
    ))  # fmt: skip
    assert lost == {}
    assert "document" in notes[0]


def test_the_layout_of_a_file(write):
    """Told from most rows: which column changes, which holds more than numbers, how many there are."""
    gum, semeval_like = layout_of(write("a", GUM_LIKE)), layout_of(write("b", semeval("c")))
    assert (gum.first, gum.word, gum.width) == ("number", 1, 3)
    assert (semeval_like.first, semeval_like.word, semeval_like.width) == ("number", 1, 17)
    spaces = layout_of(write("c", "d 0 It - \nd 1 rained (1)\nd 2 hard\tbut -\n"))
    assert (spaces.first, spaces.word, spaces.width, spaces.tabs) == ("document", 2, 4, False)
    assert cells_of(" a  b\u3000c (1) | (2)| 3)", tabs=False) == ["a", "b\u3000c", "(1)|(2)|3)"]


def test_numbers_begin_again_without_a_blank_line(write):
    text = semeval("a").replace("\n\n", "\n")
    assert words_of(read(write("a.conll", text))[0])["a"].count("/") == 1


def test_rows_of_multiword_tokens_are_counted_not_read_as_words(write):
    rows = "1-2\tdel\t_\n1\tde\t_\n2\tel\t(1\n3\tport\t1)\n3.1\t_\t(1)\n4\t.\t_\n"
    topics, lost, _ = read(write("a.conll", f"#begin document a\n{rows}#end document\n"))
    assert words_of(topics) == {"a": "de el port ."}
    assert lost == {"row whose column 1 is no whole number": 2}


@pytest.mark.parametrize("rows", [
    "{d}\tFire\t(1)\n{d}\tbroke\t_\n{d}\tout\t-\n",  # document, word, mentions
    "{d}\t0\tFire\t(1)\n{d}\t1\tbroke\t-\n{d}\t2\tout\t-\n",  # with the number of the token
    "{d} 0 Fire (1)\n{d} 0 broke -\n{d} 0 out -\n",
    "Fire\t(1)\nbroke\t-\nout\t-\n",  # word, mentions
    "Fire NN (1)\nbroke VB -\nout RP -\n",
    "0 Fire (1)\n1 broke -\n2 out -\n",
    "{d}\t0\t0\t0\tFire\t(1)\n{d}\t0\t0\t1\tbroke\t-\n{d}\t0\t0\t2\tout\t-\n",  # part, sentence, token, word
    "{d}\t0\t0\tFire\t(1)\n{d}\t0\t1\tbroke\t\n{d}\t0\t2\tout\t\n",  # empty last cells
    "{d} 0 0 Fire (1)\n{d} 0 1 broke\n{d} 0 2 out\n",
])  # fmt: skip
@pytest.mark.parametrize("header", ["({d}); part 000", "({d});", "({d})", "{d}", "{d};"])
def test_words_are_read_from_any_number_of_columns(write, rows, header):
    text = "".join(
        f"#begin document {header}\n{rows}\n#end document\n".replace("{d}", name) for name in ("7_x", "7_y")
    )
    topics, lost, _ = read(write("a.conll", text.replace("(1)", "(fire-x)")))
    assert words_of(topics) == {"7_x": "Fire broke out", "7_y": "Fire broke out"}
    assert chains_of(topics) == chains("7_x: Fire; 7_y: Fire")
    assert [topic.id for topic in topics] == ["7"]
    no_mention = rows.count("\t\n") + rows.count("broke\n") + rows.count(" out\n")
    assert sum(lost.values()) == 2 * no_mention


def test_a_word_that_is_not_there_is_said(write):
    topics, lost, _ = read(write("a.conll", "#begin document all\nall\t(1)\nall\t_\n#end document\n"))
    assert words_of(topics) == {"all": "_ _"}
    assert lost == {'row without a word, which is read as "_"': 2}


@pytest.mark.parametrize("rows", [
    "a\tx\tFire\t(1)\na\ty\tburns\t-\n",  # two columns that may be words
    "1-1\t0-4\tFire\t(1)\n1-2\t5-9\tburns\t-\n",  # names of tokens
])  # fmt: skip
def test_columns_that_cannot_be_told_apart_are_refused(write, refused, rows):
    path = write("a.conll", f"#begin document a\n{rows}#end document\n")
    with pytest.raises(
        DataError, match=r"a\.conll:2: field columns: .*; write document, sentence, token, word"
    ):
        read(path)


WORDS = [
    unicodedata.normalize("NFD", "Zürich"), "New\u00a0York", "東京\u3000都", "a\u2028b", "x\u0085y",
    "\u2009½", "|", "प्रधानमंत्री", "צה״ל", "كِتَابٌ", "ประเทศ\u200bไทย", "सं\u200dघ", "北京", "#1", "(1)", "a\x0cb",
    "soft\xadhyphen",
]  # fmt: skip


@pytest.mark.parametrize("sign", ["\t", " ", "  "])
@pytest.mark.parametrize(
    "form", ["{d} 0 {n} {w} {m}", "{n} {w} {m}", "{d} {w} {m}", "{d} 0 {n} {w} * * * * * * {m}"]
)
def test_no_white_space_but_that_of_the_format_parts_columns(write, form, sign):
    rows = "".join(
        form.replace(" ", sign).format(d="doc", n=n, w=word, m="(E)" if n % 2 else "-") + "\n"
        for n, word in enumerate(WORDS)
    )
    topics, lost, _ = read(write("a.conll", f"#begin document doc\n{rows}#end document\n"))
    (document,) = topics[0].documents
    assert document.tokens == tuple(WORDS)
    assert [mention.tokens for mention in document.mentions] == [(n, n + 1) for n in range(1, len(WORDS), 2)]
    assert lost == {}


@pytest.mark.parametrize("cell", ["(5)|(6)", "(5) | (6)", "(5)| (6)", "(5) |(6)", "(5) (6)", "(5)(6)"])
@pytest.mark.parametrize(
    "form", ["a 0 0 {} {}\n", "a\t0\t0\t{}\t{}\n", "a 0 0 {} * * * * * * {}\n", "0\t{}\t{}\n"]
)
def test_bars_between_mentions(write, form, cell):
    if cell == "(5) (6)" and "\t" not in form:
        cell = "(5)|(6)"  # two columns
    rows = form.format("It", cell) + form.format("|", "-").replace("0 0", "0 1").replace("0\t|", "1\t|")
    topics, lost, _ = read(write("a.conll", f"#begin document a\n{rows}#end document\n"))
    assert sorted(one.cluster.rpartition(":")[2] for one in topics[0].documents[0].mentions) == ["5", "6"]
    assert (words_of(topics), lost) == ({"a": "It |"}, {})


def documents(
    *chains: str, head: str = "({d}); part 000", rows: str = "{d}\t0\t{n}\tword{n}\t({c})\n"
) -> str:
    """A document for each argument, d_0 to ..., with a mention of each of its chains."""
    text = ""
    for number, names in enumerate(chains):
        name = f"d_{number}"
        body = "".join(rows.format(d=name, n=n, c=chain) for n, chain in enumerate(names.split()))
        text += f"#begin document {head.format(d=name)}\n{body}\n#end document\n"
    return text


def test_chains_that_may_be_numbered_in_each_document_are_asked_about(write):
    path = write("a.conll", documents("1 2 2", "1 3"))
    with pytest.raises(
        DataError,
        match=r"a\.conll:7: field chains: .*1 is in d_0 and in d_1.*chains.*document, topic or corpus",
    ):
        read(path)
    sizes = {}
    for way in ("document", "topic", "corpus"):
        topics, _, notes = read(path, chains=way)
        sizes[way] = sorted(len(members) for members in gold_clusters(topics).values())
        assert way in notes[0]
        assert len(topics) == (2 if way == "document" else 1)
    assert sizes == {"document": [1, 1, 1, 2], "topic": [1, 2, 2], "corpus": [1, 2, 2]}


@pytest.mark.parametrize(("text", "expected", "said"), [
    (documents("1 2", "3 4"), [1, 1, 1, 1], "no chain is in two"),
    (documents("HUM17642391151298735 ORG-a", "HUM17642391151298735"), [1, 2], "topic"),
    (documents("9001 1", "9001 2"), [1, 1, 2], "topic"),  # no document of two words has so many chains
    (documents("1 2", "1", rows="{d} 0 {n} w{n} NN * - - - - ({c})\n"), [1, 1, 1], "document"),  # CoNLL-2012
])  # fmt: skip
def test_how_far_chains_reach_is_decided_where_it_is_safe(write, text, expected, said):
    topics, lost, notes = read(write("a.conll", text))
    assert sorted(len(members) for members in gold_clusters(topics).values()) == expected
    assert (lost, len(notes)) == ({}, 1)
    assert said in notes[0]


def test_parts_do_not_mix_scopes(write):
    """All parts of a file of few columns are alike, part 000 too."""
    text = (
        "".join(
            f"#begin document (x); part 00{part}\nx\t{part}\t0\tIt\t(1)\n\n#end document\n" for part in (0, 1)
        )
        + "#begin document (y); part 000\ny\t0\t0\tIt\t(1)\n\n#end document\n"
    )
    topics, _, notes = read(write("a.conll", text))
    assert sorted(map(len, gold_clusters(topics).values())) == [1, 1, 1]
    assert len(topics) == 3
    assert "document" in notes[0]
    assert len(gold_clusters(read(write("a.conll", text), chains="corpus")[0])) == 1


def test_a_chain_in_two_topics_is_counted_where_it_is_taken_apart(write):
    text = documents("T-one T-two", "T-one").replace("d_1", "e_1") + documents("T-one").replace("d_0", "d_2")
    path = write("a.conll", text + documents("T-three").replace("d_0", "e_2"))
    topics, lost, _ = read(path)
    assert sorted(topic.id for topic in topics) == ["d", "e"]
    assert lost == {"chain in two topics, which was taken apart; chains = corpus keeps it": 1}
    assert len(gold_clusters(read(path, chains="corpus")[0])) == 3
    assert read(path, chains="corpus")[1] == {}


def test_documents_named_otherwise_in_the_header(write):
    text = documents("Telk-1x", "Telk-1x", head="(corpus/{d}.xml); part 000")
    topics, lost, _ = read(write("a.conll", text))
    assert ([topic.id for topic in topics], lost) == (["d"], {})
    assert len(gold_clusters(topics)) == 1


def test_other_scopes_are_refused(write):
    with pytest.raises(ValueError, match=r"^chains is 'all'; choose one of auto, document, topic, corpus$"):
        read(write("a.conll", documents("1")), chains="all")
