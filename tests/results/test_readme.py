"""READMEs with tables of recorded runs: what stands between markers is replaced, and nothing else."""

import json
from pathlib import Path

import pytest
from small_reports import claim_report, perplexity_report

from cdlm_lab.results.readme import main, marked_tables, stale_tables, write_readme, write_tables
from cdlm_lab.results.readme_tables import TABLES, cross_document_cost, tagging_cost
from cdlm_lab.runs.report import RunError

MARKED = (
    "# Title\n\n<!-- table storyworld-perplexity begin -->\n<!-- table storyworld-perplexity end -->\n\nEnd."
)


def record(report_folder: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes((report_folder / "report.json").read_bytes())


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    perplexity_report(tmp_path / "run", {"longformer": 1.5, "cdlm": 1.0})
    record(tmp_path / "run", tmp_path / "data" / "results" / "storyworld_tiny" / "perplexity.json")
    file = tmp_path / "README.md"
    file.write_text(MARKED, encoding="utf-8")
    return file


def test_a_stale_table_is_told_with_the_command_and_mended(readme: Path, capsys: pytest.CaptureFixture):
    (told,) = stale_tables(readme)
    assert "README.md:3: table storyworld-perplexity" in told
    assert f"cdlm_lab.results.readme {readme}" in told
    assert main([str(readme), "--check"]) == 1
    assert readme.read_text(encoding="utf-8") == MARKED
    assert main([str(readme)]) == 0
    assert "changed: storyworld-perplexity" in capsys.readouterr().out
    assert main([str(readme), "--check"]) == 0
    assert stale_tables(readme) == []
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(
        "# Title\n\n<!-- table storyworld-perplexity begin -->\n\n| variant | perplexity |"
    )
    assert text.endswith("<!-- table storyworld-perplexity end -->\n\nEnd.")
    row = next(line for line in text.splitlines() if line.startswith("| CDLM |"))
    assert row.startswith("| CDLM | 2.72 [2.5")  # e to the power of 1.0
    assert row.endswith("| *3.23 / 3.39* |")
    readme.write_text(text.replace("2.72", "2.71"), encoding="utf-8")
    assert len(stale_tables(readme)) == 1, "somebody changed a number"


def test_a_report_that_is_not_there_or_not_whole(readme: Path, capsys: pytest.CaptureFixture):
    file = readme.parent / "data" / "results" / "storyworld_tiny" / "perplexity.json"
    values = json.loads(file.read_text())
    values["identity"]["encoders"]["cdlm"] = 3
    file.write_text(json.dumps(values))
    with pytest.raises(RunError, match=r"perplexity\.json: not as its notebook writes it .*cdlm"):
        write_readme(readme)
    file.unlink()
    assert main([str(readme)]) == 2
    assert "there is no" in capsys.readouterr().err
    assert readme.read_text(encoding="utf-8") == MARKED


def test_a_table_of_claims_needs_its_report_and_the_set(tmp_path: Path):
    with pytest.raises(RunError, match=r"there is no .*verification\.json"):
        TABLES["fm2"](tmp_path / "results")
    claim_report(tmp_path / "claims")
    record(tmp_path / "claims", tmp_path / "results" / "fm2_minilm" / "verification.json")
    assert "joint IE_1" in {row[0].text for row in TABLES["fm2"](tmp_path / "results").rows}
    with pytest.raises(RunError, match="the claims of symmetric were not scored"):
        TABLES["fm2-symmetric"](tmp_path / "results")


KNOWN = ("one", "two")
BEGIN, END = b"<!-- table one begin -->", b"<!-- table one end -->"


def written(folder: Path, content: bytes, **texts: str) -> bytes:
    file = folder / "README.md"
    file.write_bytes(content)
    write_tables(file, texts, known=KNOWN)
    return file.read_bytes()


def test_what_is_outside_stays_byte_for_byte(tmp_path: Path):
    content = b"before\n%b\nold\n%b\nafter" % (BEGIN, END)
    assert written(tmp_path, content, one="| new |") == content.replace(b"\nold\n", b"\n\n| new |\n\n")
    # a byte-order mark, bytes that are no UTF-8, spaces at ends of lines, Windows' line ends
    before, after = b"\xef\xbb\xbf \xff\xfe  \r\n\r\n", b"\r\n\t \xe9\x00 no line end"
    content = written(tmp_path, before + BEGIN + b"\r\n" + END + after, one="| a |\n| b |")
    assert content == before + BEGIN + b"\r\n\r\n| a |\r\n| b |\r\n\r\n" + END + after
    file = tmp_path / "README.md"
    assert marked_tables(file, known=KNOWN)[0].text == "| a |\n| b |"
    modified = file.stat().st_mtime_ns
    assert write_tables(file, {"one": "| a |\n| b |"}, known=KNOWN) == [], "nothing to change"
    assert file.stat().st_mtime_ns == modified


def test_tables_are_found_in_order_with_their_lines(tmp_path: Path):
    file = tmp_path / "README.md"
    file.write_bytes(b"\n".join([b"a", BEGIN, b"", b"| x |", b"", END, b"", *_marks("two")]))
    tables = [(one.name, one.line, one.text) for one in marked_tables(file, known=KNOWN)]
    assert tables == [("one", 2, "| x |"), ("two", 8, "")]


def _marks(name: str) -> list[bytes]:
    return [f"<!-- table {name} {word} -->".encode() for word in ("begin", "end")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (_marks("ones"), r"README.md:2: there is no table 'ones'; did you mean 'one'"),
        (_marks("zebra"), r"README.md:2: there is no table 'zebra'; known are one, two"),
        ([BEGIN], r"README.md:2: table one has no end"),
        ([END], r"README.md:2: table one is ended and has not begun"),
        ([BEGIN, BEGIN], r"README.md:3: table one is not ended yet"),
        ([BEGIN, _marks("two")[1]], r"README.md:3: table one has begun, but two is ended here"),
        ([*_marks("one"), *_marks("one")], r"README.md:5: table one is marked a second time"),
        ([b"<!-- table one start -->"], r"README.md:2: table one is marked 'start'; write begin or end"),
        ([BEGIN, b"\xff", END], r"README.md:2: table one is not text in UTF-8"),
        (_marks("two"), r"README.md:2: there is nothing to put into table two"),
    ],
)
def test_errors_have_the_line_and_leave_the_file(lines: list[bytes], message: str, tmp_path: Path):
    content = b"\n".join([b"first", *lines])
    with pytest.raises(RunError, match=message):
        written(tmp_path, content, one="x")
    assert (tmp_path / "README.md").read_bytes() == content


def test_costs_stand_beside_the_papers(tmp_path: Path):
    row = {"ratio": 1.104, "ratio_min": 0.9, "ratio_max": 1.66, "predicted": 1.06, "added_parameters": 20100}
    kinds = (("PAN", "none"), ("PAN", "deep"), ("mine", "shallow"))
    rows = [row | {"text": text, "cda": cda} for text, cda in kinds]
    (tmp_path / "cross_document_attention_benchmark.json").write_text(json.dumps({"rows": rows}))
    table = cross_document_cost(tmp_path)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["PAN", "DEEP", "1.10 (0.90-1.66)", "1.06", "1.12", "20,100"],  # 0.637 / 0.568 seconds
        ["mine", "SHALLOW", "1.10 (0.90-1.66)", "1.06", "", "20,100"],
    ]


def test_a_file_that_is_not_there_or_is_another(tmp_path: Path):
    with pytest.raises(RunError, match="cannot be read"):
        marked_tables(tmp_path / "no.md", known=KNOWN)
    with pytest.raises(RunError, match=r"there is no .*document_tagging_benchmark\.json; run its benchmark"):
        tagging_cost(tmp_path)
    for text, message in (("{}", "the field 'rows' is missing"), ("{", "not JSON")):
        (tmp_path / "document_tagging_benchmark.json").write_text(text)
        with pytest.raises(RunError, match=message):
            tagging_cost(tmp_path)
