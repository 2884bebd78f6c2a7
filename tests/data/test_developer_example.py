"""The reader that cdlm_lab/README.md shows to developers works as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import gold_clusters

README = Path(__file__).resolve().parents[2] / "cdlm_lab" / "README.md"
FIRST = "a\tA fire broke out .\t1\t2\tfire"
LINES = [FIRST, "a\tA fire broke out .\t2\t4\tbreak", "b\tThe blaze went on\t0\t2\tfire"]
WRONG = ["a\tA fire", "a\tA fire\tone\t2\tfire", "a\tA fire\t2\t1\tfire", "a\tA fire\t0\t1\t"]


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(README), "exec"), names)
    return names


def test_it_reads_mentions_and_clusters(example: dict[str, Any], tmp_path: Path):
    file = tmp_path / "mill.tsv"
    file.write_text("\n".join(LINES), encoding="utf-8")
    (topic,) = example["read_table"](file)
    assert [document.id for document in topic.documents] == ["a", "b"]
    assert [mention.tokens for mention in topic.documents[0].mentions] == [(1, 2), (2, 4)]
    clusters = {
        frozenset(mention.document for mention in cluster) for cluster in gold_clusters([topic]).values()
    }
    assert clusters == {frozenset({"a", "b"}), frozenset({"a"})}


@pytest.mark.parametrize("line", WRONG)
def test_a_line_that_is_none_is_named(example: dict[str, Any], tmp_path: Path, line: str):
    file = tmp_path / "mill.tsv"
    file.write_text(f"{FIRST}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"mill.tsv:2: field file: .*; give document, text, first word"):
        list(example["read_table"](file))
