"""Lines of CoNLL files that do not fit: every complaint, with its line."""

import pytest

from cdlm_lab.data.coreference_files import read_conll

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


def test_no_file(tmp_path, refused):
    with refused(tmp_path / "no", "1: file: there is no such file; check the spelling of the path"):
        list(read_conll(tmp_path / "no"))
