"""Coreference end to end: mentions of a run of notebook 07 in place of the gold ones, scored as they are."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.data.convert.conll import read_conll
from cdlm_lab.data.coreference import topics_of
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import PassedOver, gold_clusters, mentions_of
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.data.tags import tagged_mentions
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.report import write_json
from cdlm_lab.tasks.coreference import experiment, view
from cdlm_lab.tasks.coreference.corpus import with_found_mentions
from cdlm_lab.tasks.coreference.experiment import SYSTEM, Settings
from cdlm_lab.tasks.coreference.metrics import score
from cdlm_lab.tasks.coreference.scoring import key_of, response_at

STORIES = 2


def tags_of_run(folder: Path, split: str, *, wrong: bool = True) -> str:
    """A folder with the tags of a split: of each document the first mention is missing, and its first word
    outside mentions is found as an event."""
    topics = read_storyworld_topics(split, STORIES)
    lines = []
    for document in (one for topic in topics for one in topic.documents):
        tags = [list(sentence.tags) for sentence in tagged_mentions(document).sentences]
        if wrong:
            number, first = next(
                (n, at) for n, one in enumerate(tags) for at, tag in enumerate(one) if tag == "B-event"
            )
            tags[number][first] = "O"
            tags[0][tags[0].index("O")] = "B-event"
        lines.append(json.dumps({"item": document.id, "tags": tags}))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"tags-{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return str(folder)


def test_right_tags_give_the_gold_mentions_back(tmp_path: Path):
    topics = list(read_storyworld_topics("test", STORIES))
    found = with_found_mentions(topics, tags_of_run(tmp_path, "test", wrong=False), "test", "event")
    given = [(one.place, one.cluster) for one in mentions_of(topics, kind="event")]
    assert [(one.place, one.cluster) for one in mentions_of(found)] == given


def test_a_run_on_found_mentions(pair_settings: Settings, tmp_path: Path):
    for split in ("dev", "test"):
        folder = tags_of_run(tmp_path / "tags", split)
    form = {"held_out_stories": STORIES, "epochs": 1, "mentions_run": folder}
    gold = key_of(list(read_storyworld_topics("test", STORIES)), "entity")
    other = gold, [one[:2] for one in gold[1:]]
    (entities := tmp_path / "entities").mkdir()
    write_json(entities / "clusters-test.json", {"kind": "entity", "key": other[0], "clusters": other[1]})
    events = replace(pair_settings, run_folder=str(tmp_path / "events"), pooled_with=str(entities), **form)
    prepared = experiment.prepare(events)
    experiment.train(prepared)
    predictions = experiment.predict(prepared)
    report = experiment.report(prepared, experiment.evaluate(prepared, predictions))
    key = key_of(prepared.topics["test"], "event")
    response = response_at(predictions.test, predictions.threshold)
    assert {one for each in key for one in each} - {one for each in response for one in each}, "missed ones"
    value = {
        (row.group, row.metric): row.value
        for row in report.rows
        if row.system == SYSTEM and row.split == "test"
    }
    both = [
        [
            [(*place, kind) for place in one]
            for kind, side in zip(("event", "entity"), sides, strict=True)
            for one in side
        ]
        for sides in zip((key, response), other, strict=True)
    ]
    for singletons, name in ((True, ""), (False, ", without singletons")):
        for group, sides in (("event", (key, response)), ("all", both)):
            wanted = score(*sides, singletons=singletons)
            assert value[f"{group}{name}", "conll/f1"] == pytest.approx(wanted["conll"].f1)
            assert value[f"{group}{name}", "muc/recall"] == pytest.approx(wanted["muc"].recall)
    gold, found = ({one for each in side for one in each} for side in (key, response))
    assert value["event", "mentions/recall"] == len(gold & found) / len(gold) < 1
    assert value["event", "mentions/precision"] == len(gold & found) / len(found) < 1
    interval = next(row for row in report.rows if (row.group, row.metric) == ("all", "conll/f1"))
    assert interval.n == len(prepared.topics["test"])
    captions = [str(table.caption) for table in view.found_view(report)]
    assert len(captions) == 4
    assert captions[-1].startswith("all, without singletons")
    assert view.errors_view(prepared, predictions).data
    for side, clusters in (("key", key), ("response", response)):
        read = read_conll(
            ("", [prepared.folder / f"{side}-test.conll"]), kind="event", passed_over=PassedOver()
        )
        sizes = [len(one) for one in gold_clusters(topics_of(read, "")).values()]
        assert sorted(sizes) == sorted(map(len, clusters)), "what reference scorers read"


def test_what_does_not_fit_is_named(pair_settings: Settings, tmp_path: Path):
    topics = list(read_storyworld_topics("test", STORIES))
    with pytest.raises(ParameterError, match=r"mentions_run is 'x', where tags-test.jsonl is missing"):
        with_found_mentions(topics, "x", "test", "event")
    folder = tags_of_run(tmp_path, "test")
    file = Path(folder) / "tags-test.jsonl"
    first, *others = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([json.dumps(json.loads(first) | {"tags": [["O"]]}), *others]), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"tags-test.jsonl:1: field tags: document .* has other validated sentences"
    ):
        with_found_mentions(topics, folder, "test", "event")
    settings = replace(pair_settings, pooled_with=str(tmp_path), run_folder=str(tmp_path / "run"))
    with pytest.raises(
        ParameterError, match=r"pooled_with is .*, without a clusters-test.json that says its kind"
    ):
        experiment.prepare(settings)
