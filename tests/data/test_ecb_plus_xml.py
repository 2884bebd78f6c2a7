"""Files of ECB+ whose annotation does not fit, and hostile XML: every complaint, with its line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cdlm_lab.data.ecb_plus import CSV_NAME, read_ecb_plus

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
RELEASE = "copy the file again from the official release"


@pytest.fixture
def corpus(write: Callable[..., Path], tmp_path: Path) -> Path:
    write("ECB+/36/36_1ecb.xml", ANNOTATED)
    write(CSV_NAME, "Topic,File,Sentence Number\n36,1ecb,1\n")
    return tmp_path


def test_the_file_without_faults(corpus):
    (topic,) = read_ecb_plus(corpus, "test")
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
            f"{RELEASE}",
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
            f"28: column 3: not XML (mismatched tag: line 28, column 2); {RELEASE}",
        ),
    ],
)
def test_malformed_annotation(corpus, write, refused, old, new, message):
    assert ANNOTATED.count(old) >= 1
    path = write("ECB+/36/36_1ecb.xml", ANNOTATED.replace(old, new, 1))
    with refused(path, message):
        list(read_ecb_plus(corpus, "test"))


@pytest.mark.parametrize("name", ["Markables", "Relations"])
def test_sections_that_are_missing(corpus, write, refused, name):
    path = write("ECB+/36/36_1ecb.xml", re.sub(f"<{name}>.*</{name}>", "", ANNOTATED, flags=re.DOTALL))
    with refused(path, f"1: {name}: there is no <{name}>; {RELEASE}"):
        list(read_ecb_plus(corpus, "test"))


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
def test_hostile_xml(corpus, write, head, entity, line):
    hostile = f'{head}\n<Document>\n<token t_id="1" sentence="0">{entity}</token>\n</Document>'
    path = write("ECB+/36/36_1ecb.xml", hostile)
    message = (
        f"^{re.escape(str(path))}:{line}: field DOCTYPE: the XML defines entities .*; remove the DOCTYPE"
    )
    with pytest.raises(ValueError, match=message):
        list(read_ecb_plus(corpus, "test"))
