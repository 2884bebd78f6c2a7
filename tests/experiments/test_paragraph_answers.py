"""Answers to paragraph tasks: the numbers of a report by hand, and what is read from a model."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from cdlm_lab.experiments.paragraph_pretraining import (
    ParagraphAnswers,
    ParagraphCorpus,
    ParagraphRun,
    ParagraphSettings,
    ParagraphTask,
    ParagraphTraining,
    answer_tasks,
    paragraph_scores,
    prepare_paragraphs,
)

PARAGRAPH, DOCUMENT, OTHER = "same paragraph", "same document", "other document"
# Three examples of two documents; in the last one a hard negative was taken from elsewhere.
BY_HAND = ParagraphAnswers(
    documents=np.array([7, 7, 3]),
    kinds=np.array([[PARAGRAPH, DOCUMENT, OTHER], [DOCUMENT, PARAGRAPH, OTHER], [OTHER, OTHER, PARAGRAPH]]),
    scores=np.array([[2.0, 1.0, -1.0], [3.0, -1.0, -2.0], [0.5, 0.0, 0.5]]),
    losses=np.array([2.0, 4.0, 3.0]),
    masked=np.array([2, 3, 1]),
)


def test_scores_by_hand() -> None:
    scores = paragraph_scores(BY_HAND, seed=0)
    values = {name: score["value"] for name, score in scores.items()}
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
    assert {name: score["n"] for name, score in scores.items()} == {
        "mspp/called": 9,
        "mspp/called/same paragraph": 3,
        "mspp/called/other document": 4,
        "mspp/first": 3,
        "mspp/above/other document": 4,
        "mlm/perplexity": 6,
    }
    assert scores["mspp/called"]["chance"] == pytest.approx(2 / 3)
    assert scores["mspp/first"]["chance"] == pytest.approx(1 / 3)
    assert scores["mspp/above/other document"]["chance"] == 0.5


def test_intervals_draw_documents() -> None:
    """With two documents a resample is one of them, the other, or both."""
    scores = paragraph_scores(BY_HAND, seed=0)
    first = scores["mspp/first"]
    assert (first["low"], first["high"]) == (0.5, 0.5), "one half in each document"
    called = scores["mspp/called"]
    assert (called["low"], called["high"]) == pytest.approx((3 / 6, 2 / 3))
    words = scores["mlm/perplexity"]
    assert (words["low"], words["high"]) == pytest.approx((np.exp(6 / 5), np.exp(3)))


def test_examples_of_one_document_have_no_interval() -> None:
    alone = ParagraphAnswers(
        documents=np.array([7, 7]),
        **{name: getattr(BY_HAND, name)[:2] for name in ("kinds", "scores", "losses", "masked")},
    )
    with pytest.raises(ValueError, match="one cluster"):
        paragraph_scores(alone, seed=0)


def test_probabilities_are_those_of_the_log_odds() -> None:
    np.testing.assert_allclose(BY_HAND.probabilities[0], [0.880797, 0.731059, 0.268941], atol=1e-6)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ParagraphRun]:
    settings = ParagraphSettings(
        corpus=ParagraphCorpus(train_clusters=2, held_out_clusters=2),
        task=ParagraphTask(head="ae_k", sentence_length=40),
        training=ParagraphTraining(steps=2, batch_size=2, micro_batch_size=1, warmup_steps=1),
    )
    return prepare_paragraphs(settings, cache_folder=tmp_path_factory.mktemp("cache"))


def test_answers_are_those_of_the_model(run: ParagraphRun) -> None:
    examples = run.splits["test"].examples
    answers = answer_tasks(run.model, examples, run.collate, batch_size=7, name="")
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
