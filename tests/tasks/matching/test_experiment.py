"""Document matching: pairs of each corpus; a run from end to end, its resumption and its report."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from tagging_runs import score_of

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import DocumentLink, PairDocument, PassedOver
from cdlm_lab.data.splits import check_splits
from cdlm_lab.runs import runs
from cdlm_lab.runs.own import add_predictions
from cdlm_lab.runs.report import read_report
from cdlm_lab.tasks.matching import experiment, view
from cdlm_lab.tasks.matching.experiment import SAME_TEXT, MatchingRun, Settings, linked_pairs, read_pairs
from cdlm_lab.tasks.matching.systems import SYSTEMS

# ---- a run


def test_every_system_is_trained_with_every_seed_and_scored(matched: MatchingRun) -> None:
    report = read_report(matched.folder)
    learned = ("bert-han", "bert-han-shallow", "gru-han", "cdlm")
    keys = [("tf-idf", 0), *((name, seed) for name in learned for seed in (0, 1))]
    assert [training.key for training in matched.trainings] == keys
    rows = {name: score_of(report, name, "test", "accuracy") for name in ("tf-idf", "cdlm", "gru-han")}
    assert (rows["cdlm"].seeds, rows["tf-idf"].deviation) == (2, None)
    assert score_of(report, "bert-han-shallow", "test", "f1").p is not None
    assert rows["gru-han"].p is None  # nothing that it builds on was run
    each = [score_of(report, "cdlm", "test", "accuracy", seed).value for seed in (0, 1)]
    assert rows["cdlm"].value == pytest.approx(np.mean(each))
    compared = [(row["a"], row["b"], row["measure"]) for row in report.tables["comparisons"]]
    assert compared == [("bert-han-shallow", "bert-han", measure) for measure in ("accuracy", "f1")]
    means = [row for row in report.rows if row.split == "test" and row.seed is None]
    assert {(row.n, row.clusters) for row in means} == {(6, 3)}
    assert {row.metric for row in report.rows if row.seed == 1} == {"accuracy", "f1"}
    assert report.data["pairs"] == {"train": 12, "dev": 6, "test": 6, "test_one_document": 6}
    for split in ("dev", "test"):
        assert f"storyworld, {split}" in view.score_table(report, split).html()


def test_scores_are_those_of_a_second_definition(matched: MatchingRun) -> None:
    report, gold = read_report(matched.folder), [pair.related for pair in matched.pairs["test"]]
    for training in matched.trainings:
        found = matched.read_predictions(matched.files(training)["test"], "test").decisions
        accuracy, f1 = (
            score_of(report, training.key[0], "test", name, training.seed) for name in ("accuracy", "f1")
        )
        assert accuracy.value == accuracy_score(gold, found)
        assert f1.value == pytest.approx(f1_score(gold, found, zero_division=0))


@pytest.mark.parametrize("field", ["related", "score"])
def test_decisions_of_ones_own_have_the_same_scores(matched: MatchingRun, tmp_path: Path, field: str) -> None:
    training, file = matched.trainings[-1], tmp_path / "mine.jsonl"
    one = matched.read_predictions(matched.files(training)["test"], "test")
    values = (one.decisions if field == "related" else one.probabilities).tolist()
    pairs = zip(matched.pairs["test"], values, strict=True)
    file.write_text("".join(f"{json.dumps({'item': pair.id, field: value})}\n" for pair, value in pairs))
    made, report = add_predictions(matched, file), read_report(matched.folder)
    mine = {row.metric: row.value for row in made.rows if row.system == "mine" and row.seed is None}
    assert mine == {
        metric: score_of(report, training.key[0], "test", metric, training.seed).value
        for metric in ("accuracy", "f1")
    }
    file.write_text(file.read_text().replace(f": {json.dumps(values[0])}", ': "yes"', 1))
    with pytest.raises(DataError, match=rf"mine\.jsonl:1: field {field}: is 'yes'; write "):
        add_predictions(matched, file)


def test_with_one_document_of_each_pair_the_same_models_are_measured_again(matched: MatchingRun) -> None:
    report, alone = read_report(matched.folder), matched.pairs["test_one_document"]
    assert [(one.id, one.second, one.related) for one in alone] == [
        (one.id, one.second, one.related) for one in matched.pairs["test"]
    ]
    assert {one.first.sentences for one in alone} == {(".",)}
    assert score_of(report, "tf-idf", "test_one_document", "accuracy").value == 0.5
    assert score_of(report, "cdlm", "test_one_document", "accuracy").n == 6
    assert "storyworld, test, one document" in view.control_table(report).html()
    rows = [row for row in report.rows if row.split != "test_one_document"]
    assert "was not measured so" in view.control_table(replace(report, rows=rows)).data


def test_what_is_finished_is_not_trained_again(matched: MatchingRun, monkeypatch) -> None:
    monkeypatch.setattr(runs, "fine_tune", None)  # calling it would fail
    experiment.train(matched)
    before = experiment.predict(matched)
    assert len(before) == 9
    training = next(one for one in matched.trainings if one.key == ("gru-han", 1))
    file, model = matched.files(training)["test"], matched.model_folder(training)
    file.unlink()
    experiment.train(matched)  # the model is still there
    again = experiment.predict(matched)["gru-han", 1]["test"]
    assert file.is_file()
    assert again.probabilities.tolist() == before["gru-han", 1]["test"].probabilities.tolist()
    aside = [(model, matched.folder / "aside"), (file, matched.folder / "aside.parquet")]
    for path, place in aside:
        path.rename(place)
    with pytest.raises(TypeError):
        experiment.train(matched)
    for path, place in aside:
        place.rename(path)


def test_before_the_start_frozen_encoders_read_one_batch(small_matching: Settings, tmp_path: Path) -> None:
    run = MatchingRun.read(replace(small_matching, run_folder=str(tmp_path), systems="bert-avg"))
    job = run.trial(run.trainings[0])
    assert len(job.train_examples) == job.config.micro_batch_size == 4
    sentences = {sentence for pair in run.pairs["train"] for sentence in pair.first.sentences}
    assert len(run.matchers.encodings) < len(sentences)


def test_encoders_that_are_trained_have_settings_of_their_own(small_matching: Settings) -> None:
    def config(name: str, pairs: int, **changes):
        return replace(small_matching, **changes).config(SYSTEMS[name], seed=0, pairs=pairs)

    assert config("gru-han", 10).steps == 4
    tuned, frozen = config("bert-han-finetuned", 12), config("bert-han", 12)
    assert (tuned.steps, tuned.micro_batch_size, tuned.learning_rate) == (3, 2, 0.0005)
    assert (frozen.steps, frozen.micro_batch_size, frozen.learning_rate) == (6, 4, 0.002)
    assert config("cdlm", 80).warmup_steps == 0
    warm = config("cdlm", 80, warmup_share=0.1)
    assert (warm.steps, warm.warmup_steps) == (20, 2)


def test_each_of_several_processes_makes_the_same_job(matched: MatchingRun) -> None:
    names = {"experiment": MatchingRun.__module__, "run": "MatchingRun", "training": "cdlm-1"}
    job = runs.job_of_run(**names, settings=json.loads(json.dumps(asdict(matched.settings))))
    assert (job.config.seed, job.config.steps) == (1, 3)
    own = matched.job(next(one for one in matched.trainings if one.name == "cdlm-1"))
    ids, same = ([one["input_ids"].tolist() for one in each.train_examples] for each in (job, own))
    assert ids == same
    assert [matched.parallel(one) for one in matched.trainings] == [""] * 9
    several = replace(matched, settings=replace(matched.settings, parallel="ddp 2"))
    assert {one.system.name for one in several.trainings if several.parallel(one)} == {"cdlm"}


# ---- pairs of each corpus


def collection(papers: int = 60) -> tuple[dict[str, PairDocument], tuple[DocumentLink, ...]]:
    """Make papers, two of three of which cite the one before them, most in a known sentence."""
    names = [f"P{number:02}-0001" for number in range(papers)]
    texts = {name: tuple(f"{name} says {n}." for n in range(8)) for name in names}
    links = tuple(
        DocumentLink(first=names[n], second=names[n - 1], source="x", in_first=(n % 8,) if n % 4 else None)
        for n in range(papers)
        if n % 3
    )
    return {name: PairDocument(id=name, sentences=text) for name, text in texts.items()}, links


def flat(pairs) -> list:
    return [pair for of_split in pairs.values() for pair in of_split]


def test_storyworld_has_as_many_related_as_unrelated_pairs_in_every_split() -> None:
    pairs, _ = read_pairs(Settings(train_stories=4, held_out_stories=3))
    assert {split: len(some) for split, some in pairs.items()} == {"train": 8, "dev": 6, "test": 6}
    assert all(sum(pair.related for pair in some) * 2 == len(some) for some in pairs.values())
    assert experiment.shared_documents(pairs) == {"dev": 0, "test": 0}
    some, _ = read_pairs(Settings(train_stories=4, held_out_stories=3, train_pairs=5))
    assert (len(some["train"]), some["train"][0] in pairs["train"], some["test"]) == (5, True, pairs["test"])


def test_linked_papers_are_split_by_papers_and_cut_to_passages() -> None:
    documents, links = collection()
    pairs = linked_pairs(documents, links, Settings(corpus=".", passage_sentences=3), PassedOver())
    papers = [{name for pair in some for name in (pair.cluster, pair.second.id)} for some in pairs.values()]
    assert sum(map(len, papers)) == len(set().union(*papers))
    everything = flat(pairs)
    assert {len(one.sentences) for pair in everything for one in (pair.first, pair.second)} == {3}
    assert sum(pair.related for pair in everything) == sum(link.in_first is not None for link in links)
    link_of = {link.documents: link for link in links}
    for pair in everything:
        names = pair.cluster, pair.second.id
        assert (names in link_of) == pair.related
        if pair.related:
            (place,), (citing,) = pair.aligned, link_of[names].in_first
            assert pair.first.sentences[place] == f"{pair.cluster} says {citing}."


def test_whole_papers_are_read_too_and_links_without_a_known_sentence_then_count() -> None:
    documents, links = collection()
    given = Settings(corpus=".", passage_sentences=0, negatives_per_positive=2)
    pairs = linked_pairs(documents, links, given, PassedOver())
    everything = flat(pairs)
    assert {len(pair.first.sentences) for pair in everything} == {8}
    assert sum(pair.related for pair in everything) == len(links) == len(everything) // 3


@pytest.mark.parametrize("passage_sentences", [0, 3])
def test_one_text_under_two_ids_is_in_one_split_and_not_unrelated_to_itself(passage_sentences: int) -> None:
    documents, links = collection()
    # every fifth paper also stands there as another one, with links of its own
    copies = {f"{name}-copy": one for name, one in list(documents.items())[::5]}
    documents |= {name: PairDocument(id=name, sentences=one.sentences) for name, one in copies.items()}
    for side in ("first", "second"):
        twins = ((link, f"{getattr(link, side)}-copy") for link in links)
        links += tuple(replace(link, **{side: twin}) for link, twin in twins if twin in documents)
    lost, given = PassedOver(), Settings(corpus=".", passage_sentences=passage_sentences)
    pairs = linked_pairs(documents, links, given, lost)
    name, one = next(iter(copies.items()))
    assert lost.counts == {SAME_TEXT: (len(copies), f"{name} = {one.id}")}
    check_splits(pairs)
    text = {name: name.removesuffix("-copy") for name in documents}
    linked = {(text[link.first], text[link.second]) for link in links}
    unrelated = [pair for pair in flat(pairs) if not pair.related]
    assert unrelated
    for pair in unrelated:
        first, second = text[pair.cluster], text[pair.second.id]
        assert first != second or pair.second.id == pair.cluster  # a passage, and the start of its own paper
        assert not {(first, second), (second, first)} & linked


def test_one_opening_is_one_text_only_where_documents_are_read_from_their_start() -> None:
    documents, links = collection()
    first = documents["P00-0001"].sentences[:3]
    for name in ("P06-0001", "P59-0001"):  # the one is cited, as P00 is, and the other only cites
        changed = (*first, *documents[name].sentences[3:])
        documents[name] = PairDocument(id=name, sentences=changed)
    for passage_sentences, expected in ((3, ["P06-0001 = P00-0001"]), (4, []), (0, [])):
        given = Settings(corpus=".", passage_sentences=passage_sentences)
        linked_pairs(documents, links, given, lost := PassedOver())
        assert lost.counts == ({SAME_TEXT: (len(expected), expected[0])} if expected else {})


def test_a_collection_of_ones_own_is_read_from_its_files(tmp_path: Path) -> None:
    documents, links = collection()
    records = [{"id": name, "sentences": one.sentences} for name, one in documents.items()]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, records)))
    records = [{"first": one.first, "second": one.second, "sentences": one.in_first} for one in links]
    (tmp_path / "links.jsonl").write_text("\n".join(map(json.dumps, records)))
    settings = Settings(corpus=str(tmp_path), passage_sentences=3)
    assert read_pairs(settings)[0] == linked_pairs(documents, links, settings, PassedOver())


def write_csv(folder: Path, *rows: str) -> Settings:
    """Write train.csv, dev.csv and test.csv with these rows, in which {} becomes the name of the split."""
    for split in ("train", "dev", "test"):
        lines = [row.format(split) for row in rows if split != "train" or not row.startswith("1,Only")]
        (folder / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return Settings(corpus=str(folder))


def test_the_benchmarks_csv_and_the_documents_that_its_splits_share(tmp_path: Path) -> None:
    rows = ("1,One here \x01. Two.,Three.", "0,One here \x01. Two.,Four.", "1,Only {0} \x01.,Five {0}.")
    settings = write_csv(tmp_path, *rows)
    (tmp_path / "test_positions.csv").write_text("0,1\n2,0\n")
    pairs, _ = read_pairs(settings)
    assert [pair.aligned for pair in pairs["dev"]] == [(0,), (), (0,)]
    assert [pair.aligned for pair in pairs["test"]] == [(1,), (), (0,)]  # as the file of positions says
    assert experiment.shared_documents(pairs) == pytest.approx({"dev": 2 / 3, "test": 2 / 3})


def test_sentences_of_all_splits_are_counted_as_those_of_the_file_of_positions(tmp_path: Path) -> None:
    text = "See Brill et al. for it. It is new."
    settings = write_csv(tmp_path, f"1,{text},Three {{}}.", f"0,{text},Four {{}}.")
    sentencex, _ = read_pairs(settings)
    whole = ("See Brill et al. for it.", "It is new.")
    assert {pair.first.sentences for pair in flat(sentencex)} == {whole}
    (tmp_path / "test_positions.csv").write_text("0,2\n")
    nltk, _ = read_pairs(settings)
    assert {pair.first.sentences for pair in flat(nltk)} == {("See Brill et al.", "for it.", "It is new.")}
    assert nltk["test"][0].aligned == (2,)


def test_what_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no pairs that can be read; give a folder with train\.jsonl"):
        read_pairs(Settings(corpus=str(tmp_path)))
    settings = write_csv(tmp_path, "1,One \x01.,Two.")
    with pytest.raises(ValueError, match="all pairs of train are related"):
        read_pairs(settings)
    (tmp_path / "test.csv").unlink()
    with pytest.raises(DataError, match="it has no split test, but train, dev"):
        read_pairs(settings)


def test_own_pairs(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        rows = [{"first": f"One {split}.", "second": f"Two {n} {split}.", "related": bool(n)} for n in (0, 1)]
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pairs, lost = read_pairs(Settings(corpus=str(tmp_path)))
    assert [[pair.related for pair in some] for some in pairs.values()] == [[False, True]] * 3
    assert not lost.counts


@pytest.mark.slow
def test_the_card_of_scisumm_counts_the_real_pairs(real_data: Callable[[str], Path], card: Callable) -> None:
    folder, scisumm = real_data("scisumm"), card("scisumm")
    assert scisumm.present(folder) == list(scisumm.checksums)
    pairs, _ = read_pairs(Settings(corpus=str(folder)))
    assert {split: len(some) for split, some in pairs.items()} == {
        split: scisumm.counts[f"{split} pairs"] for split in pairs
    }
