"""READMEs with tables of recorded runs: what stands between markers is replaced, and nothing else."""

import json
from pathlib import Path

import coreference_tables
import pytest
from page_tables import cross_document_cost, table_named, tagging_cost
from result_pages import main, stale_tables, tables_shown, write_readme
from small_reports import claim_report, perplexity_report

from cdlm_lab.runs.report import RunError

BEGIN, END = "<!-- table a/perplexity begin -->", "<!-- table a/perplexity end -->"
MARKED = f"# Title\n\n{BEGIN}\n{END}\n\nEnd."


def record(report_folder: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes((report_folder / "report.json").read_bytes())


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    perplexity_report(tmp_path / "run", {"longformer": 1.5, "cdlm": 1.0})
    record(tmp_path / "run", tmp_path / "data" / "results" / "a" / "perplexity.json")
    file = tmp_path / "README.md"
    file.write_text(MARKED, encoding="utf-8")
    return file


def test_a_stale_table_is_told_with_the_command_and_mended(readme: Path, capsys: pytest.CaptureFixture):
    (told,) = stale_tables(readme)
    assert "README.md:3: table a/perplexity" in told
    assert f"result_pages.py {readme}" in told
    assert main([str(readme), "--check"]) == 1
    assert readme.read_text(encoding="utf-8") == MARKED
    assert main([str(readme)]) == 0
    assert "changed: a/perplexity" in capsys.readouterr().out
    assert main([str(readme), "--check"]) == 0
    assert stale_tables(readme) == write_readme(readme) == []
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(f"# Title\n\n{BEGIN}\n\n| variant | perplexity |")
    assert text.endswith(f"{END}\n\nEnd.")
    row = next(line for line in text.splitlines() if line.startswith("| CDLM |"))
    assert row.startswith("| CDLM | 2.72 [2.5")  # e to the power of 1.0
    assert row.endswith("| *3.23 / 3.39* |")
    readme.write_text(text.replace("2.72", "2.71"), encoding="utf-8")
    assert len(stale_tables(readme)) == 1, "somebody changed a number"


def test_reports_of_other_seeds_are_one_table_of_their_means(tmp_path: Path):
    for name, losses in {
        "one": {"longformer": 1.5, "cdlm": 1.0},
        "two": {"longformer": 1.5, "cdlm": 1.2},
    }.items():
        perplexity_report(tmp_path / name, losses)
        record(tmp_path / name, tmp_path / "results" / "a" / f"{name}.json")
    table = table_named(tmp_path / "results", "a/one+two")
    names = [heading.name for heading in table.columns]
    longformer, cdlm = (
        dict(zip(names, [f"{cell.text} {cell.below}".strip() for cell in row], strict=True))
        for row in table.rows
    )
    # e to the power of 1.0 is 2.718, of 1.2 it is 3.320; their distance over the square root of 2 is 0.426
    assert cdlm["perplexity"].split()[:3] == ["3.02", "\u00b1", "0.43"]
    assert (cdlm["seeds"], longformer["seeds"]) == ("2", "1"), "of what is the same in all there is one"


def test_what_is_outside_stays_and_lines_end_as_they_did(readme: Path):
    before, after = "\ufeff \u00fc  \r\n\r\n", "\r\n\t no line end"
    readme.write_bytes(f"{before}{BEGIN}\r\nold\r\n{END}{after}".encode())
    assert write_readme(readme) == ["a/perplexity"]
    text = readme.read_bytes().decode()
    assert text.startswith(f"{before}{BEGIN}\r\n\r\n| variant ")
    assert text.endswith(f" |\r\n\r\n{END}{after}")
    assert "\n" not in text.replace("\r\n", "")


def test_a_report_that_is_not_there_or_not_whole(readme: Path, capsys: pytest.CaptureFixture):
    file = readme.parent / "data" / "results" / "a" / "perplexity.json"
    values = json.loads(file.read_text())
    values["identity"]["encoders"]["cdlm"] = 3
    file.write_text(json.dumps(values))
    with pytest.raises(RunError, match=r"perplexity\.json: no table a/perplexity can be made of it .*cdlm"):
        write_readme(readme)
    file.unlink()
    assert main([str(readme)]) == 2
    assert "there is no" in capsys.readouterr().err
    assert readme.read_text(encoding="utf-8") == MARKED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- table zzz begin -->\n<!-- table zzz end -->", "there is no table 'zzz': known are"),
        ("<!-- table minin begin -->\n<!-- table minin end -->", "'minin': did you mean 'mining'?"),
        (BEGIN, f"{BEGIN} stands alone; a table stands between {BEGIN} and {END}"),
        (f"{END}\n{BEGIN}", f"{END} stands alone"),
        (f"{BEGIN}\n<!-- table mining end -->", f"{BEGIN} stands alone"),
        ("<!-- table mining start -->", "<!-- table mining start --> stands alone"),
        (b"\xff", "is not text in UTF-8"),
    ],
)
def test_errors_leave_the_file(text: str | bytes, message: str, tmp_path: Path):
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "README.md").write_bytes(content)
    with pytest.raises(RunError) as raised:
        write_readme(tmp_path / "README.md")
    assert message in str(raised.value)
    assert (tmp_path / "README.md").read_bytes() == content


def test_tables_are_named_in_order_and_one_of_claims_needs_its_set(tmp_path: Path):
    marks = "a\n<!-- table two begin -->\n<!-- table two end -->\nIn a line: <!-- table x begin -->\n"
    (tmp_path / "page.md").write_text(f"{marks}{BEGIN}\n| old |\n{END}\n")
    assert tables_shown(tmp_path / "page.md") == ["two", "a/perplexity"]
    with pytest.raises(RunError, match="cannot be read"):
        tables_shown(tmp_path / "none.md")
    with pytest.raises(RunError, match=r"there is no .*claims\.json"):
        table_named(tmp_path, "a/claims:test")
    claim_report(tmp_path / "claims")
    record(tmp_path / "claims", tmp_path / "a" / "claims.json")
    assert "joint IE_1" in {row[0].text for row in table_named(tmp_path, "a/claims:test").rows}
    with pytest.raises(RunError, match=r"claims\.json: no table a/claims:symmetric can be made of it"):
        table_named(tmp_path, "a/claims:symmetric")


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
    file = tmp_path / "document_tagging_benchmark.json"
    faults = {None: "there is no .*; run its benchmark", "{}": "'rows' is missing", "{": "not JSON"}
    for text, message in faults.items():
        if text is not None:
            file.write_text(text)
        with pytest.raises(RunError, match=message):
            tagging_cost(tmp_path)


def test_a_further_seed_of_a_coreference_run_is_a_further_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    recorded = Path(__file__).resolve().parents[2] / "data" / "results"
    files = ["ecb_english/events.json", "ecb_english/events_seed_1.json"]
    lines = [f"events,{name},MiniLM,gold,this run,{name}" for name in (*files, " ".join(files))]
    (tmp_path / "c.csv").write_text("\n".join(["table,system,encoder,mentions,row,files", *lines]))
    monkeypatch.setattr(coreference_tables, "FILE", tmp_path / "c.csv")
    table = table_named(recorded, "ecb-table-2-events")
    names = [column.name for column in table.columns]
    conll = [row[names.index("CoNLL F1")] for row in table.rows]
    first, second, mean = (float(cell.text) for cell in conll)
    assert mean == pytest.approx((first + second) / 2, abs=0.06)
    assert conll[2].below == f"\u00b1 {abs(first - second) / 2**0.5:.1f}"
    assert [row[names.index("seeds")].text for row in table.rows] == ["1", "1", "2"]
