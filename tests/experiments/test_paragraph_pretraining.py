"""Notebook 08's experiment on a handful of documents: shown, trained, stopped and gone on with, scored,
opened elsewhere; its scores by hand."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, LongformerForMaskedLM

from cdlm_lab.data.records import SPLITS
from cdlm_lab.experiments import paragraph_pretraining
from cdlm_lab.experiments.paragraph_pretraining import (
    ParagraphAnswers,
    ParagraphRun,
    Settings,
    cost_of_training,
    facts,
    has_copied_globals,
    prepare,
    score_rows,
    train,
)
from cdlm_lab.models.joint import JointHead, load_joint_model, paragraph_head
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, read_report
from cdlm_lab.scores import Score
from cdlm_lab.training import fine_tuning
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.trainer import TrainingResult

SMALL = Settings(
    train_clusters=3,
    held_out_clusters=2,
    sentence_length=10,
    steps=4,
    batch_size=4,
    micro_batch_size=2,
    warmup_steps=1,
    evaluate_every=2,
    dropout=0.1,
    seed=5,
)
IDS = {"train": "c0", "validation": "c7", "test": "c11"}  # clusters that their hash puts there


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def small(tmp_path: Path) -> Settings:
    return replace(SMALL, run_folder=str(tmp_path / "run"))


@pytest.fixture(scope="module")
def untrained(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> ParagraphRun:
    """Not to be trained."""
    return prepare(replace(SMALL, run_folder=str(tmp_path_factory.mktemp("run"))), cache=cache)


Finished = tuple[ParagraphRun, TrainingResult, Path]


@pytest.fixture(scope="module")
def finished(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    run = prepare(replace(SMALL, run_folder=str(folder)), cache=cache)
    result = train(run)
    scores = paragraph_pretraining.evaluate(run, paragraph_pretraining.predict(run), result)
    paragraph_pretraining.report(run, scores)
    return run, result, folder


@pytest.fixture(scope="module")
def report(finished: Finished) -> Report:
    return read_report(finished[2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"head": "ie_1"}, "head is 'ie_1'; it must be one of 'ie_k', 'ae_k'"),
        ({"head_layers": "relu"}, "head_layers is 'relu'"),
        ({"positions": "dense"}, "positions is 'dense'"),
        ({"same_paragraph": 0}, "same_paragraph is 0; it must be at least 1"),
        ({"same_document": -1}, "same_document is -1"),
        ({"same_document": 0, "other_documents": 0}, "there must be a wrong candidate"),
        ({"sentence_length": 1}, "sentence_length is 1"),
        ({"mask_probability": 0.0}, "masking probability is 0.0"),
        ({"mask_probability": "0.15"}, "mask_probability is the text"),
        ({"batch_size": 5, "micro_batch_size": 2}, "must be a multiple"),
        ({"steps": 10, "warmup_steps": 10}, "must be fewer than steps"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"train_clusters": -1}, "train_clusters is -1"),
    ],
)
def test_values_that_cannot_be(given: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        Settings(**given)


def test_what_is_no_parameter_is_the_papers():
    """Appendix B.1: Adam with 0.9, 0.999 and 1e-8, weight decay 0.01, gradients clipped at 1."""
    config = SMALL.config
    assert (config.adam_beta2, config.adam_epsilon) == (0.999, 1e-8)
    assert (config.weight_decay, config.max_gradient_norm) == (0.01, 1.0)
    rates = [config.learning_rate_at(step) / config.learning_rate for step in range(5)]
    assert rates == pytest.approx([0, 1, 2 / 3, 1 / 3, 0]), "triangular"


def test_the_head_reads_what_the_task_makes():
    given = Settings(same_paragraph=2, same_document=0, other_documents=3, head="ae_k", head_layers="tanh")
    assert given.k == (2, 0, 3)
    assert given.right == 0.4
    assert given.joint_head == JointHead(kind="ae_k", sentences=6, length=32, layers="tanh")


# ---- the corpus ----


def jsonl(file: Path, documents: int) -> dict:
    """A corpus with a cluster in each split, its documents of two paragraphs of two sentences each."""
    with file.open("w", encoding="utf-8") as opened:
        for name in IDS.values():
            texts = [
                f"{number} roofs were sold today. {number} owners are content.\n"
                f"{number} cellars stand empty. {number} buyers are looking at them."
                for number in range(documents)
            ]
            opened.write(json.dumps({"id": name, "documents": texts}) + "\n")
    return {"corpus": str(file), "train_clusters": 0, "held_out_clusters": 0}


def test_any_text_with_paragraphs_will_do(cache: Path, small: Settings, tmp_path: Path):
    run = prepare(replace(small, **jsonl(tmp_path / "houses.jsonl", 3)), cache=cache)
    assert {split: one.counts.documents_kept for split, one in run.splits.items()} == dict.fromkeys(SPLITS, 3)
    sources = {split: one.examples.counts.sources for split, one in run.splits.items()}
    assert sources == dict.fromkeys(SPLITS, 6)


def test_too_few_documents_are_refused_with_the_name_of_the_split(
    cache: Path, small: Settings, tmp_path: Path
):
    with pytest.raises(ValueError, match=r"house\.jsonl, train: the corpus has one document only"):
        prepare(replace(small, **jsonl(tmp_path / "house.jsonl", 1)), cache=cache)
    file = tmp_path / "houses.jsonl"
    corpus = jsonl(file, 2)
    lines = file.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[2])
    record["documents"][1] = "A text of a single paragraph. It has two sentences."
    file.write_text("\n".join([*lines[:2], json.dumps(record)]), encoding="utf-8")
    other = replace(small, **corpus, run_folder=str(tmp_path / "other"))
    with pytest.raises(ValueError, match=r"houses\.jsonl, test: only one document can be asked about"):
        prepare(other, cache=cache)
    with pytest.raises(ValueError, match="storyworld has no end"):
        prepare(replace(small, train_clusters=0, run_folder=str(tmp_path / "endless")), cache=cache)


def test_a_model_from_scratch_has_copied_globals(cache: Path, small: Settings):
    run = prepare(replace(small, model="tiny"), cache=cache)
    assert not run.own_globals
    assert has_copied_globals(run.model)


# ---- training ----


def test_both_losses_are_recorded_and_add_up(finished: Finished):
    _, result, _ = finished
    assert [one["step"] for one in result.history] == [1, 2, 2, 3, 4, 4]
    for record in result.history:
        sign = "eval_" if "eval_loss" in record else ""
        parts = record[f"{sign}loss_mlm"], record[f"{sign}loss_mspp"]
        assert record[f"{sign}loss"] == pytest.approx(sum(parts), abs=1e-4)
        assert min(parts) > 0


def test_the_model_opens_in_plain_huggingface_and_says_the_same(finished: Finished):
    run, _, folder = finished
    plain = LongformerForMaskedLM.from_pretrained(folder / MODEL_FOLDER)
    tokenizer = AutoTokenizer.from_pretrained(folder / MODEL_FOLDER)
    ids = torch.tensor([tokenizer("The mayor asked for calm.")["input_ids"]])
    with torch.no_grad():
        states = run.model.eval().longformer(ids).last_hidden_state
        torch.testing.assert_close(plain(ids).logits, run.model.lm_head(states), rtol=0, atol=1e-4)


def test_a_joint_model_starts_from_the_head_beside_it(finished: Finished):
    run, _, folder = finished
    form, weights = paragraph_head(str(folder / MODEL_FOLDER))
    assert form == SMALL.joint_head == JointHead(kind="ie_k", sentences=6, length=10)
    joint, _ = load_joint_model(folder / MODEL_FOLDER, head=form)
    torch.testing.assert_close(joint.head.layers[0].weight, weights["layers.0.weight"])
    torch.testing.assert_close(joint.head.layers[0].weight, run.model.head.layers[0].weight.cpu())


def test_each_split_has_documents_and_chance_of_its_own(finished: Finished):
    splits = finished[0].splits
    assert tuple(splits) == SPLITS
    ids = {split: set(one.examples.corpus["document_id"]) for split, one in splits.items()}
    assert len(set.union(*ids.values())) == sum(map(len, ids.values())), "none is in two splits"
    assert len({one.examples.seed for one in splits.values()}) == 3
    assert len({one.checksum for one in splits.values()}) == 3
    assert len(splits["train"].examples) == 16, "steps x batch size"
    for split in ("validation", "test"):
        assert len(splits[split].examples) == splits[split].examples.counts.sources


def test_what_was_trained_is_not_what_it_began_with(finished: Finished, untrained: ParagraphRun):
    run, _, _ = finished
    before = untrained.model
    for name in (
        "head.layers.0.weight",
        "lm_head.dense.weight",
        "longformer.encoder.layer.0.output.dense.weight",
    ):
        assert not before.get_parameter(name).equal(run.model.get_parameter(name).cpu()), name


def test_global_projections_stay_copies_and_own_ones_stay_as_they_were(
    finished: Finished, cache: Path, small: Settings
):
    assert has_copied_globals(finished[0].model), "of the shipped Longformer, whose local ones have changed"
    given = {"model": "storyworld/cdlm", "steps": 1, "batch_size": 2, "warmup_steps": 0}
    run = prepare(replace(small, **given), cache=cache)
    projection = run.model.longformer.encoder.layer[0].attention.self
    own, local = projection.query_global.weight.clone(), projection.query.weight.clone()
    train(run)
    assert projection.query_global.weight.equal(own)
    assert not projection.query.weight.equal(local)


def without_times(result: TrainingResult) -> list[dict]:
    return [{name: value for name, value in one.items() if name != "seconds"} for one in result.history]


def test_a_killed_run_goes_on_as_if_it_had_not_been(finished: Finished, cache: Path, small: Settings):
    def killed(record: dict) -> None:
        if record["step"] == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        train(prepare(small, cache=cache), on_log=killed)
    assert not (Path(small.run_folder) / MODEL_FOLDER).exists()
    run = prepare(small, cache=cache)
    assert without_times(train(run)) == without_times(finished[1])
    for name, weight in finished[0].model.state_dict().items():
        assert weight.equal(run.model.state_dict()[name]), name


def test_an_interrupted_run_and_other_processes_leave_no_model(
    cache: Path, small: Settings, monkeypatch: pytest.MonkeyPatch
):
    ended = SimpleNamespace(interrupted=True, steps=2)
    monkeypatch.setattr(fine_tuning, "train_in_processes", lambda *_, **__: ended)
    run = prepare(small, cache=cache)
    with pytest.raises(KeyboardInterrupt, match="stopped after step 2; run again to go on"):
        train(run)
    ended.interrupted = False
    monkeypatch.setenv("RANK", "1")
    assert train(run) is ended
    assert not (Path(small.run_folder) / MODEL_FOLDER).exists()


# ---- before the start, and the report ----


def test_facts_say_what_is_read_and_what_is_lost(untrained: ParagraphRun):
    text = dict(facts(untrained))
    assert text["precision"] == precision_told("auto")
    train, test = untrained.splits["train"], untrained.splits["test"]
    assert text["for training"].startswith(f"{train.counts.documents_kept} documents with sentences: ")
    assert f"{train.examples.counts.sources} of them long enough" in text["for training"]
    assert text["test"].endswith(f"; {len(test.examples)} examples")
    assert text["wrong candidates"] == "each document has 2 or more sentences in other paragraphs"
    cut = [n for index in range(16) for n in train.examples.describe(index).sequence.cut]
    read = sum(len(train.examples[index]["input_ids"]) - 6 for index in range(16))
    share = sum(n > 0 for n in cut) / 96
    assert text["too long"] == (
        f"{share:.0%} of the sentences are cut to 10 tokens, which takes {sum(cut) / (sum(cut) + read):.0%} "
        "of the text"
    )
    assert text["training"].startswith("4 steps of 4 examples, each of about 6")
    assert f"{16 / train.examples.counts.sources:.1f} times each paragraph" in text["training"]
    assert text["test"] in paragraph_pretraining.preview(untrained).data


def test_documents_without_sentences_are_counted(small: Settings, tmp_path: Path):
    texts = [
        f"{name} roofs were sold today. {name} owners are content.\n{name} cellars stand empty. Nobody buys."
        for name in "abc"
    ]
    for cluster in ("c0", "c7", "c11"):  # a split each
        (tmp_path / "houses" / cluster).mkdir(parents=True)
        for number, text in enumerate([*texts, "Too short."]):
            (tmp_path / "houses" / cluster / f"{number}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "houses" / "list.csv").write_text("a")
    houses = {"corpus": str(tmp_path / "houses"), "train_clusters": 0, "held_out_clusters": 0}
    text = dict(facts(prepare(replace(small, **houses), cache=tmp_path)))
    assert text["for training"] == (
        "3 documents with sentences (1 without): 6 paragraphs, 3 of them long enough to ask about, "
        "9 sentences"
    )
    assert text["files passed over"] == "1: list.csv"


def test_missing_hard_negatives_are_reported(cache: Path, small: Settings):
    run = prepare(replace(small, same_document=30), cache=cache)
    counts = run.splits["train"].examples.counts
    assert counts.short_of_hard > 0
    text = dict(facts(run))["wrong candidates"]
    assert text.startswith(f"{counts.short_of_hard / counts.sources:.0%} of these paragraphs")
    assert "fewer than 30 sentences elsewhere" in text


def test_cost_grows_with_what_is_asked(untrained: ParagraphRun, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(paragraph_pretraining, "measured_rate", lambda precision: 1e9)
    cost = cost_of_training(untrained)
    mean = sum(len(untrained.splits["train"].examples[index]["input_ids"]) for index in range(16)) / 16
    assert cost.tokens == pytest.approx(mean)
    assert 15e6 < cost.memory_bytes < 1e8, "16 bytes for each of a million weights, and activations"
    held_out = 2 * len(untrained.splits["validation"].examples) + len(untrained.splits["test"].examples)
    forward = (cost.seconds - 4 * cost.step_seconds) / held_out
    # a step reads four examples, forward and backward, which is three to three and a half forwards
    assert 3 < cost.step_seconds / (4 * forward) < 3.6


def test_the_report_has_scores_and_where_they_come_from(report: Report, finished: Finished):
    run = finished[0]
    test = run.splits["test"]
    assert report.seed == 5
    assert report.scores["mspp/first"]["n"] == len(test.examples)
    assert report.scores["mspp/called"]["n"] == 5 * len(test.examples)
    assert report.scores["mspp/called"]["chance"] == pytest.approx(0.8)
    assert report.scores["best_step"]["value"] in (2, 4)
    assert report.data["checksums"]["test"] == test.checksum
    assert report.data["documents"]["train"] == run.splits["train"].counts.documents_kept
    assert report.data["right"] == 0.2
    assert report.data["precision"] == precision_told("auto")
    assert 0 < report.data["share_of_text_cut"] < 1
    assert {record["step"] for record in report.tables["history"]} == {1, 2, 3, 4}


def test_rows_of_the_table_are_the_numbers_of_the_report(report: Report):
    def score(metric: str, value: float, n: int, spread: float = 0.1, chance: float | None = None) -> Score:
        return Score(metric=metric, value=value, low=value - spread, high=value + spread, n=n, chance=chance)

    by_hand = [
        score("mspp/called", 0.75, 1000, chance=0.8),
        score("mspp/called/other document", 0.5, 400),
        score("mspp/first", 0.3, 200, chance=0.2),
        score("mlm/perplexity", 12.345, 5000, spread=1),
    ]
    rows = paragraph_pretraining.score_table(replace(report, rows=by_hand)).data.split("<tr")[2:]
    cells = [[cell.partition(">")[2].partition("</td")[0] for cell in row.split("<td")[1:]] for row in rows]
    assert cells == [
        ["candidates called as they are", "75.0% [65.0%, 85.0%]", "80%", "1,000"],
        ["&emsp;of other documents", "50.0% [40.0%, 60.0%]", "", "400"],
        ["one of the same paragraph is ranked first", "30.0% [20.0%, 40.0%]", "20%", "200"],
        ["perplexity of masked tokens", "12.35 [11.35, 13.35]", "", "5,000"],
    ]
    assert paragraph_pretraining.score_table(report).data.count("<tr") == 1 + 8
    assert sum(name.startswith(("mspp/", "mlm/")) for name in report.scores) == 8


def test_the_figure_has_both_losses(report: Report):
    figure = paragraph_pretraining.losses_figure(report)
    training, validation, *_ = figure.data
    assert list(training.x) == [1, 2, 3, 4]
    assert list(validation.x) == [2, 4]
    assert len(figure.data) == 4
    first = next(one for one in report.tables["history"] if one["step"] == 2 and "eval_loss" in one)
    assert figure.data[3].y[0] == pytest.approx(first["eval_loss_mspp"], abs=1e-3)
    assert any("20%" in one.text for one in figure.layout.annotations), "what guessing gives"


def test_preview_is_the_example(untrained: ParagraphRun):
    view, example = (
        paragraph_pretraining.example(untrained, index=3),
        untrained.splits["train"].examples.describe(3),
    )
    kinds = [sentence.source for sentence in view.sentences]
    assert kinds[0] == "this paragraph"
    assert Counter(kinds[1:]) == {"same paragraph": 1, "same document": 2, "other document": 2}
    for shown, drawn in zip(view.sentences, example.sentences, strict=True):
        assert shown.document == drawn.document_id
        assert shown.cut == max(0, len(drawn.tokens) - 9)
        assert shown.probability is None
    assert [sentence.label for sentence in view.sentences] == [None, *example.labels.tolist()]
    assert [(sentence.source == "same paragraph") for sentence in view.sentences[1:]] == [
        sentence.label == 1 for sentence in view.sentences[1:]
    ]
    assert view.title == "Example 4 of train"


def test_masked_words_are_shown_as_they_were_with_what_is_read_instead(untrained: ParagraphRun):
    view, example = (
        paragraph_pretraining.example(untrained, index=0),
        untrained.splits["train"].examples.describe(0),
    )
    masked = np.flatnonzero(example.mlm_labels != -100)
    np.testing.assert_array_equal(np.flatnonzero(view.marked.masked), masked)
    vocabulary = untrained.tokenizer.get_vocab()
    names = {number: name for name, number in vocabulary.items()}
    for place in masked:
        assert view.marked.tokens[place] == names[int(example.mlm_labels[place])].removeprefix("\u0120")
        if example.input_ids[place] == untrained.tokenizer.mask_token_id:
            assert view.marked.replacement[place] == "<mask>"
    assert view.marked.tokens[0] == "<s>"
    assert [view.marked.tokens[start] for start in example.sequence.starts[1:]] == ["</s>"] * 5
    np.testing.assert_array_equal(np.flatnonzero(view.marked.special), example.sequence.starts)
    assert "Example 1 of train" in view._repr_html_()


def test_what_a_model_says_stands_beside_each_candidate(untrained: ParagraphRun):
    examples = untrained.splits["test"].examples
    scores = np.zeros((len(examples), 5))
    scores[1] = [0.0, np.log(3), -np.log(3), 50.0, -50.0]
    answers = ParagraphAnswers(
        documents=np.arange(len(examples)),
        kinds=np.full(scores.shape, "other document"),
        scores=scores,
        losses=np.ones(len(examples)),
        masked=np.ones(len(examples), dtype=np.int64),
    )
    view = paragraph_pretraining.example(untrained, split="test", index=1, answers=answers)
    assert view.sentences[0].probability is None
    shown = [sentence.probability for sentence in view.sentences[1:]]
    assert shown == pytest.approx([0.5, 0.75, 0.25, 1.0, 0.0])


def test_an_example_that_does_not_exist(untrained: ParagraphRun):
    with pytest.raises(IndexError, match="there are 16"):
        paragraph_pretraining.example(untrained, index=16)


# ---- scores by hand ----

PARAGRAPH, DOCUMENT, OTHER = "same paragraph", "same document", "other document"
# Three examples of two documents; in the last one a hard negative was taken from elsewhere.
BY_HAND = ParagraphAnswers(
    documents=np.array([7, 7, 3]),
    kinds=np.array([[PARAGRAPH, DOCUMENT, OTHER], [DOCUMENT, PARAGRAPH, OTHER], [OTHER, OTHER, PARAGRAPH]]),
    scores=np.array([[2.0, 1.0, -1.0], [3.0, -1.0, -2.0], [0.5, 0.0, 0.5]]),
    losses=np.array([2.0, 4.0, 3.0]),
    masked=np.array([2, 3, 1]),
)


def by_name(answers: ParagraphAnswers) -> dict[str, Score]:
    return {row.metric: row for row in score_rows(answers, seed=0)}


def test_scores_by_hand():
    scores = by_name(BY_HAND)
    values = {name: score.value for name, score in scores.items()}
    assert values == pytest.approx(
        {
            # right, wrong, right; wrong, wrong, right; wrong, right, right
            "mspp/called": 5 / 9,
            "mspp/called/same paragraph": 2 / 3,
            "mspp/called/other document": 3 / 4,
            # first; second; level with another one for the first place
            "mspp/first": (1 + 0 + 0.5) / 3,
            "mspp/above/other document": (1 + 1 + 0.5 + 1) / 4,
            "mlm/perplexity": np.exp(9 / 6),
        }
    ), "only one document has a candidate of the same document, which leaves no interval"
    assert {name: score.n for name, score in scores.items()} == {
        "mspp/called": 9,
        "mspp/called/same paragraph": 3,
        "mspp/called/other document": 4,
        "mspp/first": 3,
        "mspp/above/other document": 4,
        "mlm/perplexity": 6,
    }
    assert scores["mspp/called"].chance == pytest.approx(2 / 3)
    assert scores["mspp/first"].chance == pytest.approx(1 / 3)
    assert scores["mspp/above/other document"].chance == 0.5


def test_intervals_draw_documents():
    """With two documents a resample is one of them, the other, or both."""
    scores = by_name(BY_HAND)
    first = scores["mspp/first"]
    assert (first.low, first.high) == (0.5, 0.5), "one half in each document"
    called = scores["mspp/called"]
    assert (called.low, called.high) == pytest.approx((3 / 6, 2 / 3))
    words = scores["mlm/perplexity"]
    assert (words.low, words.high) == pytest.approx((np.exp(6 / 5), np.exp(3)))


def test_examples_of_one_document_have_no_interval():
    alone = ParagraphAnswers(
        documents=np.array([7, 7]),
        **{name: getattr(BY_HAND, name)[:2] for name in ("kinds", "scores", "losses", "masked")},
    )
    with pytest.raises(ValueError, match="one cluster"):
        score_rows(alone, seed=0)


def test_probabilities_are_those_of_the_log_odds():
    np.testing.assert_allclose(BY_HAND.probabilities[0], [0.880797, 0.731059, 0.268941], atol=1e-6)


def test_answers_are_those_of_the_model(cache: Path, small: Settings):
    given = {"head": "ae_k", "sentence_length": 40, "attention_dropout": 0.0}
    run = prepare(replace(small, **given), cache=cache)
    examples = run.splits["test"].examples
    answers = paragraph_pretraining.answer_tasks(run.model, examples, run.collate, batch_size=7, name="")
    assert len(answers.documents) == len(examples) > 20
    assert len({len(examples[index]["input_ids"]) for index in range(14)}) > 5, "read by length"
    for index in (0, 1, 2, len(examples) - 1):
        example = examples.describe(index)
        with torch.no_grad():
            output = run.model(**run.collate([examples[index]]))
        logits = output.logits[0].double().numpy()
        np.testing.assert_allclose(answers.scores[index], logits[:, 1] - logits[:, 0], atol=1e-4)
        assert answers.masked[index] == (example.mlm_labels >= 0).sum()
        mean = answers.losses[index] / answers.masked[index]
        assert mean == pytest.approx(output.parts["mlm"].item(), abs=1e-4)
        assert answers.documents[index] == example.sentences[0].row
        assert (answers.kinds[index] == PARAGRAPH).tolist() == example.labels.astype(bool).tolist()
