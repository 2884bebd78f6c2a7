"""What attention between documents is worth: conditions, scores, the table, and what is kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from cdlm_lab.attention.cut import Cut
from cdlm_lab.explorer import cuts
from cdlm_lab.explorer.view import cut_view
from cdlm_lab.runs.items import items_of
from cdlm_lab.tasks.pretraining import perplexity

SMALL = {"longformer": "", "rand_cdlm": "", "prefix_cdlm": "", "clusters": 3, "precision": "float32"}


def test_each_layer_is_cut_by_itself_and_with_a_control() -> None:
    assert cuts.conditions(2) == {
        "whole": None,
        "all layers cut": Cut(),
        "layer 1 cut": Cut(layers=(0,)),
        "layer 2 cut": Cut(layers=(1,)),
        "as much cut within documents": Cut(edges="random"),
    }


def test_the_shipped_model_needs_the_other_document_and_its_second_layer() -> None:
    """The recorded table has 1.77 whole, 20.5 cut, 19.9 with layer 2 cut, and 1.8 with another."""
    scores = cuts.compare(cuts.measure_perplexity(perplexity.Settings(**SMALL)))
    values = {row.system: row.value for row in scores.rows if row.metric == "cross_document_perplexity"}
    assert values["whole"] < 3
    assert values["layer 1 cut"] < 3
    assert values["layer 2 cut"] > 2 * values["whole"]
    assert values["all layers cut"] > 2 * values["whole"]
    assert values[cuts.LOCAL] > values["whole"]
    assert {row["b"] for row in scores.comparisons} == {"whole"}


def test_the_table_shows_scores_with_intervals_and_their_distance() -> None:
    right = {"whole": np.array([1.0, 1, 1, 0]), "all layers cut": np.array([1.0, 0, 0, 0])}
    form = {"split": "", "seed": -1, "items": range(4), "clusters": [0, 1, 2, 3]}
    items = pd.concat(items_of({"matching": of}, system=name, **form) for name, of in right.items())
    table = cut_view(cuts.compare(items))
    assert [heading.name for heading in table.columns] == ["CDLM reads", "document pairs right, %"]
    cells = [row[1] for row in table.rows]
    assert [cell.text for cell in cells] == ["75.0", "25.0"]
    assert cells[1].below.startswith("[0.0, ")
    assert cells[0].test == ""
    assert cells[1].test.startswith("-50.0, p ")


def test_the_whole_model_comes_first_and_large_perplexities_are_plain_numbers() -> None:
    folder = Path(__file__).parents[2] / "data" / "results"
    rows = cut_view(cuts.read_scores(folder / "cut_storyworld.json")).rows
    cells = {name.text: first for name, first, *_ in rows}
    assert [*cells][:2] == ["whole", "all layers cut"]
    assert [*cells][-1] == cuts.LOCAL
    control = cells["as much cut within documents"]
    assert (control.text, control.test) == ("1,481", "\u00d7 677.9, p < 0.001")


def test_scores_are_kept_in_the_run_folder_and_other_corpora_have_none(analysis, tmp_path) -> None:
    kept = cuts.CutScores(rows=[], comparisons=[{"a": "all layers cut", "b": "whole"}])
    settings = replace(analysis.settings, run_folder=str(tmp_path))
    here = replace(analysis, settings=settings)
    cuts.write_scores(kept, here.folder / "cuts.json")
    assert cuts.measure(here) == kept
    (here.folder / "cuts.json").unlink()
    assert cuts.measure(replace(here, settings=replace(settings, cut_stories=0))).rows == []
