"""A question as a model reads it, as a picture: what is global, what is cut, what a step costs."""

from __future__ import annotations

import numpy as np

from cdlm_lab.experiments.multihop_qa import MultihopRun
from cdlm_lab.experiments.preview import token_texts
from cdlm_lab.experiments.step_cost import bytes_per_number
from cdlm_lab.models.estimate import estimate
from cdlm_lab.widgets.packed_example import DocumentLoss, PackedPreview

CUT = "its share of the room"


def question_preview(run: MultihopRun, *, index: int = 0) -> PackedPreview:
    """A training question in its sequence: the question, then each paragraph.

    Args:
        index: of the question, in the order of the corpus.
    """
    question = run.questions["train"][index]
    answerer = run.untrained
    examples = answerer.examples([question])
    sequence, encoded = examples.describe(0), examples.encoded[question.id]
    texts, starts_word = token_texts(answerer.tokenizer, sequence.input_ids)
    special = examples.special.is_special(sequence.input_ids)
    asked = np.flatnonzero(special & (sequence.paragraph < 0))[1:3]  # [q] and [/q], after [CLS]
    places = np.arange(len(texts))
    in_question = (places >= asked[0]) & (places <= asked[1])
    documents = [DocumentLoss(title=question.text, kept=int((in_question & ~special).sum()))]
    for number, (paragraph, tokens) in enumerate(zip(question.paragraphs, encoded.paragraphs, strict=True)):
        kept = int(((sequence.paragraph == number) & ~special).sum())
        cut = len(tokens.ids) + len(tokens.title_ids) - kept
        documents.append(DocumentLoss(title=paragraph.title, kept=kept, cut=cut, reason=CUT if cut else ""))
    cost = estimate(
        answerer.model.config,
        length=len(texts),
        batch=run.settings.answerer.micro_batch_size,
        global_tokens=float(sequence.global_attention_mask.sum()),
        bytes_per_number=bytes_per_number(run.settings.answerer.precision),
    )
    return PackedPreview(
        tokens=texts,
        document=np.where(in_question, 0, np.where(sequence.paragraph < 0, -1, sequence.paragraph + 1)),
        masked=np.zeros(len(texts), dtype=bool),
        replacement=[None] * len(texts),
        global_=sequence.global_attention_mask == 1,
        special=special,
        documents=documents,
        starts_word=starts_word,
        title="A question with its paragraphs, as a model reads it",
        memory_bytes=cost.peak_bytes,
    )
