"""The grid of real text, and the recorded runs that data/results/README.md says it makes again."""

import json
import re
from pathlib import Path

import pytest
from tiny_grid import jobs_of

from cdlm_lab.parameters import SHOWN

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results"
GRID = ROOT / "notebooks" / "grids" / "real_small.yaml"
ROW = re.compile(r"^\| `([\w/.-]+\.json)` \|.*\| `([\w.-]+)` \|[^|]*\|$", re.MULTILINE)
RUN_OF = dict(ROW.findall((RESULTS / "README.md").read_text()))
# Made by older code, or counted from a run.
BY_HAND = {"scisumm_minilm/matching_small_weights.json", "ecb_plus_minilm/attention_by_common_words.json"}
OF_STORYWORLD = {"train_stories", "held_out_stories", "stories", "paragraphs", "seen"}
FIRST_MODELS = {
    "longformer",
    "local-cdlm",
    "rand-cdlm",
    "prefix-cdlm",
    "cdlm",
}  # histories


def test_every_recorded_file_has_a_run_and_every_run_a_file():
    files = {path.relative_to(RESULTS).as_posix() for path in RESULTS.glob("*_minilm*/*.json")}
    assert set(RUN_OF) == files - BY_HAND
    named = [*RUN_OF.values()]
    assert len(set(named)) == len(named)
    others = {"results", "news_512_perplexity-s1-validation"} | FIRST_MODELS
    assert {*named, *others} == set(jobs_of(GRID))


@pytest.mark.parametrize(("file", "run"), RUN_OF.items())
def test_a_run_has_the_parameters_of_its_recorded_file(file: str, run: str):
    """Those that both know; not where corpora and models lie, nor what is shown or of storyworld alone."""
    recorded = json.loads((RESULTS / file).read_text())["parameters"]
    now = jobs_of(GRID)[run].effective
    passed_over = set(SHOWN) | (set() if now.get("corpus") == "storyworld" else OF_STORYWORLD)
    names = [name for name in now.keys() & recorded.keys() - passed_over if "/" not in str(now[name])]
    assert len(names) >= 3
    assert {name: now[name] for name in names} == {name: recorded[name] for name in names}
