"""An example of paragraph pre-training as a picture, before training and, with what the model says of it,
after."""

from __future__ import annotations

import numpy as np

from cdlm_lab.data.splits import Split
from cdlm_lab.experiments.paragraph_answers import ParagraphAnswers
from cdlm_lab.experiments.paragraph_pretraining import ParagraphRun
from cdlm_lab.experiments.preview import token_texts
from cdlm_lab.widgets.paragraph_example import ParagraphExampleView, TaskSentence
from cdlm_lab.widgets.token_text import MarkedTokens


def task_preview(
    run: ParagraphRun, *, split: Split = "train", index: int = 0, answers: ParagraphAnswers | None = None
) -> ParagraphExampleView:
    """s_0 and its candidates: where each comes from, its label, its masked words, how much of it is cut.

    Args:
        split, index: of the example.
        answers: what a model made of the examples of that split; None = it was not asked.

    Raises:
        IndexError: there is no such example.
    """
    example = run.splits[split].examples.describe(index)
    tokens, starts_word = token_texts(run.tokenizer, example.sequence.input_ids)
    read, _ = token_texts(run.tokenizer, example.input_ids)
    masked = example.mlm_labels >= 0
    nothing = np.zeros(len(tokens), dtype=bool)
    marked = MarkedTokens(
        texts=tokens,
        starts_word=starts_word,
        masked=masked,
        replacement=[text if hidden else None for text, hidden in zip(read, masked, strict=True)],
        mask_token=run.tokenizer.mask_token,
        global_=nothing,
        special=run.splits[split].examples.special.is_special(example.sequence.input_ids),
        cross_document=nothing,
    )
    labels = [None, *example.labels.tolist()]
    said = [None, *(answers.probabilities[index].tolist() if answers else [None] * len(example.labels))]
    return ParagraphExampleView(
        marked=marked,
        sentence=example.sequence.sentence,
        sentences=[
            TaskSentence(
                source=drawn.kind if number else "this paragraph",
                document=drawn.document_id,
                label=labels[number],
                cut=int(example.sequence.cut[number]),
                probability=said[number],
            )
            for number, drawn in enumerate(example.sentences)
        ],
        title=f"Example {index + 1:,} of {split}",
    )
