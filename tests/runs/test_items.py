"""The table of items, written and read."""

from pathlib import Path

import pandas as pd
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.runs.items import COLUMNS, items_of, read_items, write_items


def test_a_table_is_read_as_it_was_written(tmp_path: Path):
    values = {"accuracy": [1, 0.5], "nats": ([2.5, 1.0], [3, 2])}
    table = items_of(
        values, system="a", split="dev", items=["q1", "q2"], clusters=["s", "s"], seed=2, group="g"
    )
    assert table.shape == (4, len(COLUMNS))
    write_items(table, tmp_path / "items.parquet")
    again = read_items(tmp_path / "items.parquet")
    pd.testing.assert_frame_equal(again, table.astype(again.dtypes.to_dict()))
    assert again.iloc[3].to_dict() == {
        "system": "a", "seed": 2, "split": "dev", "group": "g", "cluster": "s", "item": "q2",
        "metric": "nats", "num": 1.0, "den": 2.0,
    }  # fmt: skip
    assert not [*tmp_path.glob(".*")], "nothing unfinished is left"


@pytest.mark.parametrize("content", [None, b"", b"PAR1 and no more", b"\x00" * 64])
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path: Path, content: bytes | None):
    file = tmp_path / "items.parquet"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=r"items\.parquet:1: field file: ") as caught:
        read_items(file)
    assert "\n" not in str(caught.value)
