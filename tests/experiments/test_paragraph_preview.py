"""The preview of paragraph pre-training shows what is read."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.experiments.paragraph_pretraining import (
    ParagraphAnswers,
    ParagraphCorpus,
    ParagraphRun,
    ParagraphSettings,
    ParagraphTask,
    ParagraphTraining,
    prepare_paragraphs,
    task_preview,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ParagraphRun:
    settings = ParagraphSettings(
        corpus=ParagraphCorpus(train_clusters=2, held_out_clusters=2),
        task=ParagraphTask(sentence_length=12),
        training=ParagraphTraining(steps=2, batch_size=2, micro_batch_size=2, warmup_steps=0),
    )
    return prepare_paragraphs(settings, cache_folder=tmp_path_factory.mktemp("cache"))


def test_preview_is_the_example(run: ParagraphRun) -> None:
    view, example = task_preview(run, index=3), run.splits["train"].examples.describe(3)
    kinds = [sentence.source for sentence in view.sentences]
    assert kinds[0] == "this paragraph"
    assert Counter(kinds[1:]) == {"same paragraph": 1, "same document": 2, "other document": 2}
    for shown, drawn in zip(view.sentences, example.sentences, strict=True):
        assert shown.document == drawn.document_id
        assert shown.cut == max(0, len(drawn.tokens) - 11)
        assert shown.probability is None
    assert [sentence.label for sentence in view.sentences] == [None, *example.labels.tolist()]
    assert [(sentence.source == "same paragraph") for sentence in view.sentences[1:]] == [
        sentence.label == 1 for sentence in view.sentences[1:]
    ]
    assert view.title == "Example 4 of train"


def test_masked_words_are_shown_as_they_were_with_what_is_read_instead(run: ParagraphRun) -> None:
    view, example = task_preview(run, index=0), run.splits["train"].examples.describe(0)
    masked = np.flatnonzero(example.mlm_labels != -100)
    np.testing.assert_array_equal(np.flatnonzero(view.marked.masked), masked)
    vocabulary = run.tokenizer.get_vocab()
    names = {number: name for name, number in vocabulary.items()}
    for place in masked:
        assert view.marked.tokens[place] == names[int(example.mlm_labels[place])].removeprefix("\u0120")
        if example.input_ids[place] == run.tokenizer.mask_token_id:
            assert view.marked.replacement[place] == "<mask>"
    assert view.marked.tokens[0] == "<s>"
    assert [view.marked.tokens[start] for start in example.sequence.starts[1:]] == ["</s>"] * 5
    np.testing.assert_array_equal(np.flatnonzero(view.marked.special), example.sequence.starts)
    assert "Example 1 of train" in view._repr_html_()


def test_what_a_model_says_stands_beside_each_candidate(run: ParagraphRun) -> None:
    examples = run.splits["test"].examples
    scores = np.zeros((len(examples), 5))
    scores[1] = [0.0, np.log(3), -np.log(3), 50.0, -50.0]
    answers = ParagraphAnswers(
        documents=np.arange(len(examples)),
        kinds=np.full(scores.shape, "other document"),
        scores=scores,
        losses=np.ones(len(examples)),
        masked=np.ones(len(examples), dtype=np.int64),
    )
    view = task_preview(run, split="test", index=1, answers=answers)
    assert view.sentences[0].probability is None
    said = [sentence.probability for sentence in view.sentences[1:]]
    assert said == pytest.approx([0.5, 0.75, 0.25, 1.0, 0.0])


def test_an_example_that_is_not_there(run: ParagraphRun, tmp_path: Path) -> None:
    with pytest.raises(IndexError, match="there are 4"):
        task_preview(run, index=4)
