"""The benchmark of cross-document attention: what is counted, and the command from end to end."""

from cdlm_lab.benchmarks import cross_document_attention as benchmark


def test_cda_adds_the_papers_20k_parameters():
    # an affine map from 2 x 100 numbers to 100, with its bias, shared by all levels
    added = benchmark.added_parameters(benchmark.matchers())
    assert added == {"none": 0, "shallow": 20_100, "deep": 20_100}


def test_multiply_adds_by_hand():
    # one sentence of one word: 2 documents x (GRU 6 x 100 x 50, GRU 6 x 150 x 50, pooling 2 x (100^2 + 100))
    alone = 2 * (30_000 + 45_000 + 20_200)
    # the document against 1 sentence and 1 document, then the affine map
    shallow = alone + 2 * (200 * 2 + 20_000)
    expected = {"none": alone, "shallow": shallow, "deep": shallow + 2 * (200 * 2 + 20_000)}
    assert {cda: benchmark.multiply_adds(cda, sentences=1, words=1) for cda in expected} == expected


def test_the_command_prints_a_table_and_writes_the_rows(command):
    written, printed = command(benchmark, "--texts S2ORC --pairs 2 --repeats 2")
    rows = written["rows"]
    assert [row["cda"] for row in rows] == ["none", "shallow", "deep"]
    assert rows[0]["ratio"] == rows[0]["predicted"] == 1
    assert rows[0]["predicted"] < rows[1]["predicted"] < rows[2]["predicted"] < 1.2
    assert all(row["ratio_min"] <= row["ratio"] <= row["ratio_max"] for row in rows)
    assert "| S2ORC | deep |" in printed
