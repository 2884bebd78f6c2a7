"""Documents typed into a box: plain ones, and marked mentions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.marked import (
    parse_marked_documents,
    pasted_documents,
    read_marked_documents,
)
from cdlm_lab.data.records import CoreferenceDocument, Topic, gold_clusters, mentions_of

TWO = """
== Kiss and Tell ==
A film of 1945.
It stars <b>Shirley Temple</b>.

==Shirley   Temple ==

She was an envoy.  Later a == sign.
"""


def parse(text: str, **options: str) -> Topic:
    return parse_marked_documents(text, **{"kind": "event", **options})


@pytest.mark.parametrize(("text", "documents"), [
    (TWO, [("Kiss and Tell", "A film of 1945.\nIt stars <b>Shirley Temple</b>."),
           ("Shirley Temple", "She was an envoy.  Later a == sign.")]),
    ("\n One.\n\nTwo = 2. \n", [("", "One.\n\nTwo = 2.")]),
    ("\ufeff== a ==\r\nOne.\r\nTwo.\r\n", [("a", "One.\nTwo.")]),
    ("One.\r\n\r\nTwo.\r\n", [("", "One.\n\nTwo.")]),
])  # fmt: skip
def test_title_and_text_of_each_document(text, documents):
    assert pasted_documents(text) == documents


MARKED_TWO = """\
== police report ==
A <m>fire</m> broke out in the <m>old mill</m> on Monday. Nobody was hurt.

== newspaper ==
The <m>blaze at the <m>mill</m></m> was put out after three hours.
"""


def only(text: str) -> CoreferenceDocument:
    """Parse a text without headings and return its only document."""
    (document,) = parse(text).documents
    return document


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split(" "))


def sentences(document: CoreferenceDocument) -> list[str]:
    return [" ".join(document.tokens[start:end]) for start, end in document.sentences]


def marked(document: CoreferenceDocument) -> list[str]:
    return [document.text_of(mention) for mention in document.mentions]


def test_two_documents():
    topic = parse(MARKED_TWO)
    report, newspaper = topic.documents
    assert topic.id == "own documents"
    assert [(d.id, d.topic, d.subtopic) for d in topic.documents] == [
        (name, topic.id, topic.id) for name in ("police report", "newspaper")
    ]
    assert report.tokens == words("A fire broke out in the old mill on Monday . Nobody was hurt .")
    assert (report.sentences, report.validated) == (((0, 11), (11, 15)), (0, 1))
    assert newspaper.tokens == words("The blaze at the mill was put out after three hours .")
    assert (newspaper.sentences, newspaper.validated) == (((0, 12),), (0,))
    assert [(m.id, m.document, m.tokens, m.sentence, m.kind, m.tag) for m in mentions_of([topic])] == [
        ("police report:0", "police report", (1, 2), 0, "event", ""),
        ("police report:1", "police report", (6, 8), 0, "event", ""),
        ("newspaper:0", "newspaper", (1, 5), 0, "event", ""),
        ("newspaper:1", "newspaper", (4, 5), 0, "event", ""),
    ]
    # Nothing is known of clusters.
    clusters = gold_clusters([parse(MARKED_TWO, kind="entity")], kind="entity")
    assert {name: [m.id for m in members] for name, members in clusters.items()} == {
        mention.id: [mention.id] for mention in mentions_of([topic])
    }


@pytest.mark.parametrize("change", [
    lambda text: text.replace("\n", "\r\n"),
    "\ufeff{}".format,
    str.rstrip,
    lambda text: text.replace("m>", "M>"),
])  # fmt: skip
def test_other_editors_and_marks_in_capitals(change):
    assert change(MARKED_TWO) != MARKED_TWO
    assert parse(change(MARKED_TWO)) == parse(MARKED_TWO)


def test_headings():
    document = only("\n\n <m>Rain</m> fell = = here\n")
    assert (document.id, document.tokens) == ("document 1", ("Rain", "fell", "=", "=", "here"))
    assert [mention.id for mention in document.mentions] == ["document 1:0"]
    topic = parse(" \n==a  b==\nx\n  ==== c=d: 1 === \n<m>y</m>\n== c ==\nz")
    assert [(d.id, d.tokens) for d in topic.documents] == [("a b", ("x",)), ("c=d: 1", ("y",)), ("c", ("z",))]


@pytest.mark.parametrize(("text", "tokens"), [
    ("O'Brien’s 15-year-old don't. DOE'S", "O'Brien ’s 15-year-old don't . DOE 'S"),
    ("They're James' rock'n'roll, 'tis 'so'!", "They 're James ' rock'n'roll , ' tis ' so ' !"),
    ("Mr. Doe: www.example.com/a_b — “no”…", "Mr . Doe : www.example.com / a_b — “ no ” …"),
    ("fire\xadfighter \xad", "firefighter"),
    ("😀fire❤\ufe0f", "😀 fire ❤\ufe0f"),
    ("\u202eabc\u202c\u200b \x00 \x07מבול", "abc מבול"),
    ("<script>a</script> <b>", "< script > a < / script > < b >"),
    ("J\xa0. B\u2028. C\x85.", "J . B . C ."),  # the sentence splitter panics at such white space
])  # fmt: skip
def test_tokens(text, tokens):
    assert only(f"{text} <m>END</m>").tokens == (*words(tokens), "END")


@pytest.mark.parametrize(("text", "tokens", "mentions"), [
    ("A fire<m>fight</m>er.", "A fire fight er .", ["fight"]),
    ("<m>Doe</m>'s U.S<m>.</m>", "Doe 's U.S .", ["Doe", "."]),
    ("1,<m>473</m>", "1 , 473", ["473"]),
    ("a<m> b c </m>d", "a b c d", ["b c"]),
    ("a\n<m>\nb\n</m>\nc", "a b c", ["b"]),
    ("<m><m>a</m> b <m>c <m>d</m></m></m>", "a b c d", ["a", "a b c d", "c d", "d"]),
])  # fmt: skip
def test_a_mention_starts_and_ends_with_a_token(text, tokens, mentions):
    document = only(text)
    assert (document.tokens, marked(document)) == (words(tokens), mentions)


@pytest.mark.parametrize(("text", "expected"), [
    ("Mr. Doe met <m>Dr. Roe</m>. It rained.", ["Mr . Doe met Dr . Roe .", "It rained ."]),
    ("A line\nwraps <m>here</m>. Not\nthere.", ["A line wraps here .", "Not there ."]),
    ("The U.S.\nArmy <m>left</m>.", ["The U.S. Army left ."]),
    ("It <m>burns. Help. Come</m> now. Go.", ["It burns . Help . Come now .", "Go ."]),
    ("<m>It <m>burns. Help</m>. Come</m>. Go.", ["It burns . Help . Come .", "Go ."]),
    ("It ended.<m> Fire</m> broke out.", ["It ended .", "Fire broke out ."]),
    ("<m>It ended. </m>Fire.", ["It ended .", "Fire ."]),
])  # fmt: skip
def test_sentences(text, expected):
    document = only(text)
    assert sentences(document) == expected
    assert document.validated == tuple(range(len(expected)))


def test_much_of_everything():
    word = "x" * 10_000
    assert only(f"<m>{word}</m>").tokens == (word,)
    assert len(only("(" * 10_000 + "<m>a</m>").tokens) == 10_001
    deep = only("<m>a " * 3_000 + "</m>" * 3_000)
    assert [mention.tokens for mention in deep.mentions] == [(start, 3_000) for start in range(3_000)]


HALF = "text: half a character"
HALF_A_HEADING = "heading: a line that starts with == is a heading, but == at its end is missing"
TITLE = "write it as == title =="
LEAVE = "write some, or leave the document out"
ABOVE = "text: text before the first heading; write a heading above it: == title =="
SAME = "heading: a document a begins in line 1 already; name them apart"
OPEN = (
    "marks: <m> is not closed before the next blank line, heading or end of the text; "
    "write </m> behind the last word of the mention"
)
BEGIN = "marks: </m> without <m>; write <m> before the first word of the mention"
WORDS = "marks: no words between <m> and </m>; write them around the words of a mention"
NONE, EACH = "marks: no mention in any document", "write <m> before and </m> behind the words of each"
OF_HEADINGS = [  # whether mentions are marked or not
    ("\n a\n== b ==\n<m>c</m>", f"2: {ABOVE}"),
    ("== a ==\nb\n\n==  a ==\n<m>c</m>", f"4: {SAME}"),
    ("== a ==\nOne.\n== ==\n<m>Two</m>.", f"3: heading: no title; {TITLE}"),
    ("==\n<m>b</m>", f"1: heading: no title; {TITLE}"),
    ("====\n<m>One</m>.", f"1: heading: no title; {TITLE}"),
    ("== a ==\n<m>b</m>\n == c =", f"3: {HALF_A_HEADING}; {TITLE}"),
    ("== a\n<m>One</m>.", f"1: {HALF_A_HEADING}; {TITLE}"),
    ("== a ==\n\n== b ==\n<m>Two</m>.", f"1: text: the document a has no text; {LEAVE}"),
    ("== a ==\n<m>b</m>\n== c ==\n\n", f"3: text: the document c has no text; {LEAVE}"),
    ("a\nb \ud83d\n<m>c</m>", f"2: {HALF} (U+D83D); delete it and type it again"),
]  # fmt: skip
OF_MARKS = [
    ("", "1: text: the text is empty; write a document with marked mentions"),
    (" \n\u2028\n", "1: text: the text is empty; write a document with marked mentions"),
    ("\u200b", f"1: text: the document document 1 has no text; {LEAVE}"),
    ("== <m>a</m> ==\nb", f"1: heading: a mark in the title; {TITLE}"),
    ("a\nb</m> c", f"2: {BEGIN}"),
    ("<m>a</m>\n</m>", f"2: {BEGIN}"),
    ("a </M>", f"1: {BEGIN}"),
    ("a\n<m>b <m>c</m>\n", f"2: {OPEN}"),
    ("<m>a\n<m>b\n\nc</m>", f"1: {OPEN}"),
    ("== a ==\n<m>b\n== c ==\nd</m>", f"2: {OPEN}"),
    ("a\n<m> </m>", f"2: {WORDS}"),
    ("<m></m>", f"1: {WORDS}"),
    ("<m>\u200b</m> a", f"1: {WORDS}"),
    ("a\n<m>\n<m>big fire</m> </m>", "2: marks: 'big fire' is marked twice; take one <m> and </m> out"),
    (
        f"<m><m>{'fire ' * 99}</m></m>",
        f"1: marks: '{'fire ' * 8}' is marked twice; take one <m> and </m> out",
    ),
    ("a. B.", f"1: {NONE}; {EACH}"),
    ("== a ==\nb\n== c ==\nd [M]e[/M]", f"1: {NONE}, and [M] is not a mark; {EACH}"),
    ("a < m >b</ m>", f"1: {NONE}, and <m> is not a mark; {EACH}"),
]


@pytest.mark.parametrize(("text", "message"), [*OF_HEADINGS, *OF_MARKS])
def test_complaints(refused, text, message):
    with refused("my box", message):
        parse(text, source="my box")


@pytest.mark.parametrize(
    ("text", "message"), [*OF_HEADINGS, (" \n", "1: text: the text is empty; write or paste a document")]
)
def test_complaints_of_plain_documents(refused, text, message):
    with refused("documents", message):
        pasted_documents(text)


def test_unknown_kind(tmp_path):
    for read in (parse, read_marked_documents):
        with pytest.raises(ValueError, match=r"^kind is 'events'; choose one of event, entity$"):
            read(str(tmp_path), kind="events")


def test_a_file_and_a_folder(write, tmp_path):
    assert read_marked_documents(str(write("own.md", MARKED_TWO)), kind="event") == parse(MARKED_TWO)
    write("own/b.txt", "\ufeffA <m>blaze</m>.\n\nRain.")
    write("own/a 1.v2.TXT", "No mention.")
    for other in ("own/notes.md", "own/._b.txt", "own/deeper/c.txt"):
        write(other, "\0")
    topic = read_marked_documents(tmp_path / "own", kind="entity")
    assert [(d.id, marked(d)) for d in topic.documents] == [("a 1.v2", []), ("b", ["blaze"])]
    assert sentences(topic.documents[1]) == ["A blaze .", "Rain ."]
    assert [(m.id, m.kind) for m in mentions_of([topic])] == [("b:0", "entity")]


def test_complaints_of_files(write, tmp_path, refused):
    remedy = "put each document there as a file of its own, or give the path of one file"
    with refused(tmp_path, f"1: folder: no files named *.txt; {remedy}"):
        read_marked_documents(tmp_path, kind="event")
    one = write("one.txt", "== a ==\n<m>b")
    with refused(one, f"2: {OPEN}"):
        read_marked_documents(one, kind="event")
    heading = "heading: a heading, but each file of a folder is one document"
    remedy = "take the heading out, or read this file by itself"
    for text, message in (("== a ==\n<m>b", f"1: {heading}; {remedy}"), ("a\n</m>", f"2: {BEGIN}")):
        one.write_text(text)
        with refused(one, message):
            read_marked_documents(tmp_path, kind="event")
    one.write_text("a")
    with refused(tmp_path, f"1: {NONE}; {EACH}"):
        read_marked_documents(tmp_path, kind="event")
    write("one.TXT", "<m>b</m>")
    with refused(one, "1: file name: one.TXT is document one too; name them apart"):
        read_marked_documents(tmp_path, kind="event")


# One token each.
WORDS_AND_STOPS = words("The fire U.S. Mr 1,473 😀 “ ” . ! ( O'Brien מבול a <")


def nested(spans: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return as (start, end) those spans (start, width) that fit into `length` and cross no earlier one."""
    kept: list[tuple[int, int]] = []
    for start, width in spans:
        end = start + width
        crossing = any(a < start < b < end or start < a < end < b for a, b in kept)
        if end <= length and not crossing and (start, end) not in kept:
            kept.append((start, end))
    return sorted(kept)


@given(
    tokens=st.lists(st.sampled_from(WORDS_AND_STOPS), min_size=1, max_size=30),
    spans=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=12),
    gap=st.sampled_from(["", " ", " \xa0"]),
    space=st.sampled_from(" \n\t"),
)
def test_marks_are_read_back(tokens, spans, gap, space):
    kept = nested(spans, len(tokens))
    pieces = []
    for place, word in enumerate(tokens):
        opened = sum(start == place for start, _ in kept)
        closed = sum(end == place + 1 for _, end in kept)
        pieces.append(f"<m>{gap}" * opened + word + f"{gap}</m>" * closed)
    # The last document has a mention, so that those without one can be read.
    own, other = f"== own ==\n{space.join(pieces)}", "\n== other ==\n<m>end</m>"
    document, unmarked = (parse(text + other).documents[0] for text in (own, re.sub(r"</?m>", "", own)))
    assert document.tokens == unmarked.tokens == tuple(tokens)
    assert [mention.tokens for mention in document.mentions] == kept
    ends = [end for _, end in unmarked.sentences]
    expected = [end for end in ends if not any(a < end < b for a, b in kept)]
    assert [end for _, end in document.sentences] == expected
