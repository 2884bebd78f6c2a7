"""Document matching: pairs of each corpus, a run from end to end, taken up again and reported."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from tagging_runs import score_of

from cdlm_lab.data.document_links import DocumentLink
from cdlm_lab.data.document_pairs import PairDocument, check_splits
from cdlm_lab.data.scisumm import NET, SciSumm
from cdlm_lab.experiments import document_matching, runs
from cdlm_lab.experiments.document_matching import (
    SAME_TEXT,
    MatchingRun,
    Settings,
    corpus_facts,
    linked_pairs,
    predict,
    prepare,
    preview,
    read_pairs,
    score_table,
    shared_documents,
    train,
)
from cdlm_lab.experiments.runs import cost_facts, job_of_run
from cdlm_lab.experiments.systems.matching import SYSTEMS
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import read_report

# ---- a run


def test_every_system_is_trained_with_every_seed_and_scored(matched: MatchingRun) -> None:
    report = read_report(matched.folder)
    assert [training.key for training in matched.trainings] == [
        ("tf-idf", 0),
        *((name, seed) for name in ("bert-han", "bert-han-shallow", "gru-han", "cdlm") for seed in (0, 1)),
    ]
    rows = {name: score_of(report, name, "test", "accuracy") for name in ("tf-idf", "cdlm", "gru-han")}
    assert rows["cdlm"].seeds == 2
    assert rows["tf-idf"].deviation is None
    assert score_of(report, "bert-han-shallow", "test", "f1").p is not None
    assert rows["gru-han"].p is None  # nothing that it builds on was run
    each = [
        row.value
        for row in report.rows
        if (row.system, row.split, row.metric) == ("cdlm", "test", "accuracy") and row.seed is not None
    ]
    assert rows["cdlm"].value == pytest.approx(np.mean(each))
    assert {row["a"]: row["b"] for row in report.tables["comparisons"]} == {"bert-han-shallow": "bert-han"}
    means = [row for row in report.rows if row.split == "test" and row.seed is None]
    assert {(row.n, row.clusters) for row in means} == {(6, 3)}
    assert {row.metric for row in report.rows if row.seed == 1} == {"accuracy", "precision", "recall", "f1"}
    assert report.data["pairs"] == {"train": 12, "dev": 6, "test": 6}
    for split in ("dev", "test"):
        assert f"storyworld, {split}" in score_table(report, split).html()


def test_what_is_finished_is_not_trained_again(matched: MatchingRun, monkeypatch) -> None:
    monkeypatch.setattr(runs, "fine_tune", None)  # calling it would fail
    train(matched)
    assert len(predict(matched)) == 9
    training = next(one for one in matched.trainings if one.key == ("gru-han", 1))
    (matched.folder_of(training) / "test.npz").unlink()
    train(matched)  # the model is still there
    before = predict(matched)["gru-han", 1]["test"].probabilities
    assert (matched.folder_of(training) / "test.npz").is_file()
    assert before.tolist() == predict(matched)["gru-han", 1]["test"].probabilities.tolist()
    matched.model_folder(training).rename(matched.folder / "aside")
    (matched.folder_of(training) / "test.npz").rename(matched.folder / "aside.npz")
    with pytest.raises(TypeError):
        train(matched)
    (matched.folder / "aside.npz").rename(matched.folder_of(training) / "test.npz")
    (matched.folder / "aside").rename(matched.model_folder(training))


def test_what_a_person_reads_before_the_start(matched: MatchingRun) -> None:
    facts = dict(corpus_facts(matched) + cost_facts(matched))
    assert facts["precision of training"] == precision_told("auto")
    assert facts["train"].startswith("12 pairs, 50% related")
    assert "updates with 4 pairs, about" in facts["GRU-HAN"]
    assert "6 updates" in facts["GRU-HAN"]
    assert "times 2 seeds" in facts["CDLM"]
    assert "TF-IDF cosine" not in facts
    assert "12 pairs" in preview(matched).data
    lost = replace(matched, lost={"not read": ["a.xml: no sentences", "b.xml: a link, or no file"]})
    listed = "2: a.xml: no sentences, b.xml: a link, or no file"
    assert dict(corpus_facts(lost))["not read"] == listed


def test_before_the_start_frozen_encoders_read_one_batch(small_matching: Settings, tmp_path: Path) -> None:
    run = MatchingRun.read(replace(small_matching, run_folder=str(tmp_path), systems="bert-avg"))
    (training, _) = run.trainings
    job = run.trial(training)
    assert len(job.train_examples) == job.config.micro_batch_size == 4
    assert len(run.matchers.encodings) < len(
        {sentence for pair in run.pairs["train"] for sentence in pair.first.sentences}
    )


def test_encoders_that_are_trained_have_settings_of_their_own(small_matching: Settings) -> None:
    config = small_matching.config
    assert config(SYSTEMS["gru-han"], seed=3, pairs=10).steps == 4
    tuned = config(SYSTEMS["bert-han-finetuned"], seed=0, pairs=12)
    assert (tuned.steps, tuned.micro_batch_size, tuned.learning_rate) == (3, 2, 0.0005)
    frozen = config(SYSTEMS["bert-han"], seed=0, pairs=12)
    assert (frozen.steps, frozen.micro_batch_size, frozen.learning_rate) == (6, 4, 0.002)
    assert config(SYSTEMS["cdlm"], seed=0, pairs=80).warmup_steps == 0
    warm = replace(small_matching, warmup_share=0.1).config(SYSTEMS["cdlm"], seed=0, pairs=80)
    assert (warm.steps, warm.warmup_steps) == (20, 2)


def test_each_of_several_processes_makes_the_same_job(matched: MatchingRun) -> None:
    names = {"experiment": "document_matching", "run": "MatchingRun", "training": "cdlm-1"}
    values = json.loads(json.dumps(asdict(matched.settings)))
    job = job_of_run(**names, settings=values)
    assert (job.config.seed, job.config.steps) == (1, 3)
    own = matched.job(next(one for one in matched.trainings if one.name == "cdlm-1"))
    ids = ([one["input_ids"].tolist() for one in each.train_examples] for each in (job, own))
    assert next(ids) == next(ids)
    assert [matched.parallel(one) for one in matched.trainings] == [""] * 9
    several = replace(matched, settings=replace(matched.settings, parallel="ddp 2"))
    assert {one.system.name for one in several.trainings if several.parallel(one)} == {"cdlm"}


def test_values_that_do_not_fit_are_refused_before_anything_is_read(small_matching, tmp_path: Path) -> None:
    uneven = replace(small_matching, encoder_micro_batch_size=3, run_folder=str(tmp_path / "run"))
    with pytest.raises(ParameterError, match=r"batch_size \(4\) must be a multiple"):
        prepare(uneven)


# ---- pairs of each corpus


def small(**changes) -> Settings:
    return Settings(train_stories=4, held_out_stories=3, **changes)


def collection(papers: int = 60) -> tuple[dict[str, PairDocument], tuple[DocumentLink, ...]]:
    """Papers, each but every third citing the one before it, most of them in a known sentence."""
    names = [f"P{number:02}-0001" for number in range(papers)]
    documents = {
        name: PairDocument(id=name, sentences=tuple(f"{name} says {n}." for n in range(8))) for name in names
    }
    links = tuple(
        DocumentLink(first=names[n], second=names[n - 1], source="x", in_first=(n % 8,) if n % 4 else None)
        for n in range(papers)
        if n % 3
    )
    return documents, links


def test_storyworld_has_as_many_related_as_unrelated_pairs_in_every_split() -> None:
    pairs, _ = read_pairs(small())
    assert {split: len(found) for split, found in pairs.items()} == {"train": 8, "dev": 6, "test": 6}
    assert all(sum(pair.related for pair in found) * 2 == len(found) for found in pairs.values())
    assert shared_documents(pairs) == {"dev": 0, "test": 0}


def test_linked_papers_are_split_by_papers_and_cut_to_passages() -> None:
    documents, links = collection()
    pairs, _ = linked_pairs(documents, links, Settings(passage_sentences=3))
    papers = {
        split: {name for pair in of_split for name in (pair.cluster, pair.second.id)}
        for split, of_split in pairs.items()
    }
    assert sum(map(len, papers.values())) == len(set().union(*papers.values()))
    everything = [pair for of_split in pairs.values() for pair in of_split]
    assert {len(pair.first.sentences) for pair in everything} == {3}
    assert {len(pair.second.sentences) for pair in everything} == {3}
    related = [pair for pair in everything if pair.related]
    assert len(related) == sum(link.in_first is not None for link in links)
    linked = {link.documents for link in links}
    for pair in everything:
        assert ((pair.cluster, pair.second.id) in linked) == pair.related
    link_of = {link.documents: link for link in links}
    for pair in related:
        (place,) = pair.aligned
        (citing,) = link_of[pair.cluster, pair.second.id].in_first
        assert pair.first.sentences[place] == f"{pair.cluster} says {citing}."


def test_whole_papers_are_read_too_and_links_without_a_known_sentence_then_count() -> None:
    documents, links = collection()
    pairs, _ = linked_pairs(documents, links, Settings(passage_sentences=0, negatives_per_positive=2))
    everything = [pair for of_split in pairs.values() for pair in of_split]
    assert {len(pair.first.sentences) for pair in everything} == {8}
    assert sum(pair.related for pair in everything) == len(links) == len(everything) // 3


@pytest.mark.parametrize("passage_sentences", [0, 3])
def test_one_text_under_two_ids_is_in_one_split_and_not_unrelated_to_itself(passage_sentences: int) -> None:
    documents, links = collection()
    # every fifth paper also stands there as another one, with links of its own
    copies = {f"{name}-copy": one for name, one in list(documents.items())[::5]}
    documents |= {name: PairDocument(id=name, sentences=one.sentences) for name, one in copies.items()}
    links += tuple(
        replace(link, first=f"{link.first}-copy") for link in links if f"{link.first}-copy" in documents
    )
    links += tuple(
        replace(link, second=f"{link.second}-copy") for link in links if f"{link.second}-copy" in documents
    )
    pairs, lost = linked_pairs(documents, links, Settings(passage_sentences=passage_sentences))
    assert lost == {SAME_TEXT: [f"{name} = {one.id}" for name, one in copies.items()]}
    check_splits(pairs)
    text = {name: name.removesuffix("-copy") for name in documents}
    linked = {(text[link.first], text[link.second]) for link in links}
    unrelated = [pair for of_split in pairs.values() for pair in of_split if not pair.related]
    assert unrelated
    for pair in unrelated:
        first, second = text[pair.cluster], text[pair.second.id]
        assert first != second or pair.second.id == pair.cluster  # a passage, and the start of its own paper
        assert (first, second) not in linked
        assert (second, first) not in linked


def test_one_opening_is_one_text_only_where_documents_are_read_from_their_start() -> None:
    documents, links = collection()
    first = documents["P00-0001"].sentences[:3]
    for name in ("P06-0001", "P59-0001"):  # the one is cited, as P00 is, and the other only cites
        changed = (*first, *documents[name].sentences[3:])
        documents[name] = PairDocument(id=name, sentences=changed)
    for passage_sentences, told in ((3, ["P06-0001 = P00-0001"]), (4, []), (0, [])):
        _, lost = linked_pairs(documents, links, Settings(passage_sentences=passage_sentences))
        assert lost.get(SAME_TEXT, []) == told


def test_a_collection_of_ones_own_is_read_from_its_files(tmp_path: Path) -> None:
    documents, links = collection()
    records = [{"id": name, "sentences": one.sentences} for name, one in documents.items()]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, records)))
    records = [{"first": one.first, "second": one.second, "sentences": one.in_first} for one in links]
    (tmp_path / "links.jsonl").write_text("\n".join(map(json.dumps, records)))
    settings = Settings(corpus=str(tmp_path), passage_sentences=3)
    assert read_pairs(settings) == linked_pairs(documents, links, settings)


def test_the_benchmarks_csv_and_the_documents_that_its_splits_share(tmp_path: Path) -> None:
    rows = ["1,One here \x01. Two.,Three.", "0,One here \x01. Two.,Four."]
    for split in ("train", "dev", "test"):
        extra = "" if split == "train" else f"\n1,Only {split} \x01.,Five {split}."
        (tmp_path / f"{split}.csv").write_text("\n".join(rows) + extra + "\n")
    (tmp_path / "test_positions.csv").write_text("0,1\n2,0\n")
    pairs, _ = read_pairs(small(corpus=str(tmp_path)))
    assert [pair.aligned for pair in pairs["dev"]] == [(0,), (), (0,)]
    assert [pair.aligned for pair in pairs["test"]] == [(1,), (), (0,)]  # as the file of positions says
    assert shared_documents(pairs) == {"dev": pytest.approx(2 / 3), "test": pytest.approx(2 / 3)}


def test_sentences_of_all_splits_are_counted_as_those_of_the_file_of_positions(tmp_path: Path) -> None:
    text = "See Brill et al. for it. It is new."
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.csv").write_text(f"1,{text},Three {split}.\n0,{text},Four {split}.\n")
    sentencex, _ = read_pairs(small(corpus=str(tmp_path)))
    assert {pair.first.sentences for of_split in sentencex.values() for pair in of_split} == {
        ("See Brill et al. for it.", "It is new.")
    }
    (tmp_path / "test_positions.csv").write_text("0,2\n")
    nltk, _ = read_pairs(small(corpus=str(tmp_path)))
    assert {pair.first.sentences for of_split in nltk.values() for pair in of_split} == {
        ("See Brill et al.", "for it.", "It is new.")
    }
    assert nltk["test"][0].aligned == (2,)


def test_a_split_of_one_class_and_one_that_is_missing(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.csv").write_text("1,One \x01.,Two.\n")
    with pytest.raises(ValueError, match="all pairs of train are related"):
        read_pairs(small(corpus=str(tmp_path)))
    (tmp_path / "test.csv").unlink()
    with pytest.raises(ParameterError, match=r"there is no test\.csv"):
        read_pairs(small(corpus=str(tmp_path)))


def test_what_is_lost_of_scisumm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, links = collection()
    read = SciSumm(
        papers=documents,
        links=tuple(links),
        replaced={f"{tmp_path}/a.xml": 2},
        unplaced=(),
        passed_over=(f"{tmp_path}/b.xml: no sentences",),
    )
    (tmp_path / NET).mkdir()
    monkeypatch.setattr(document_matching, "read_scisumm", lambda folder: read)
    _, lost = read_pairs(Settings(corpus=str(tmp_path), passage_sentences=3))
    assert lost == {"not read": ["b.xml: no sentences"], "characters lost that are not UTF-8": ["a.xml"]}


def test_a_folder_without_any_of_them(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="write storyworld, the folder of SciSumm, a folder with"):
        read_pairs(small(corpus=str(tmp_path)))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"warmup_share": 0.6}, r"warmup_share is 0\.6; it must be at most 0\.5"),
        ({"seeds": 0}, "seeds is 0"),
        ({"systems": "bert"}, "systems names 'bert'"),
        ({"parallel": "four"}, "parallel is 'four'"),
        ({"train_stories": 1}, "train_stories is 1"),
        ({"negatives_per_positive": 0}, "negatives_per_positive is 0"),
        ({"passage_sentences": -1}, "passage_sentences is -1"),
        ({"unrelated": "hard"}, "unrelated"),
    ],
)
def test_values_that_cannot_be(change: dict, complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        Settings(**change)


@pytest.mark.slow
def test_the_card_of_scisumm_counts_the_real_pairs(real_data: Callable[[str], Path], card: Callable) -> None:
    folder = real_data("scisumm")
    scisumm = card("scisumm")
    assert scisumm.present(folder) == list(scisumm.checksums)
    pairs, _ = read_pairs(Settings(corpus=str(folder)))
    assert {split: len(found) for split, found in pairs.items()} == {
        split: scisumm.counts[f"{split} pairs"] for split in pairs
    }
