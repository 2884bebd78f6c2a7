"""Bounds and choices of the notebooks' settings: a value outside is refused in one line that names it."""

from typing import Any

import pytest

from cdlm_lab.explorer import ranks as attention_analysis
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference import experiment as coreference
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint import paragraphs as paragraph_pretraining
from cdlm_lab.tasks.matching import alignment as sentence_alignment
from cdlm_lab.tasks.matching import experiment as document_matching
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.pretraining import experiment as pretraining
from cdlm_lab.tasks.tagging import experiment as document_tagging

# Of each notebook's parameters values that cannot be.
OUTSIDE: dict[Any, list[tuple[str, Any]]] = {
    pretraining: [("variant", "bigbird"), ("dropout", "0.1"), ("packing", "whole"), ("masking", "words"),
                  ("held_out_clusters", -1), ("max_length", "512")],
    coreference: [("kind", "person"), ("topic_level", "corpus"), ("context", "paragraphs"),
                  ("train_stories", "3"), ("epochs", 0), ("micro_batch_size", 0), ("train_pairs", -1),
                  ("select_by", "f1"), ("scorer", "both"), ("hide_mentions", 1.5)],
    document_matching: [("warmup_share", 0.6), ("seeds", 0), ("most_words", 0), ("parallel", "four"),
                        ("train_stories", 1), ("negatives_per_positive", 0), ("passage_sentences", -1),
                        ("unrelated", "hard")],
    sentence_alignment: [("reading", "recall")],
    multihop_qa: [("support", "all"), ("seen", "one"), ("paragraphs", 1), ("train_questions", -1),
                  ("dev_from_train", -1), ("parallel", "many")],
    document_tagging: [("seeds", 0), ("epochs", 0), ("batch_size", 0), ("encoder_epochs", -1),
                       ("select_by", "accuracy"), ("schedule", "cosine"),
                       ("sweep", "2 0"), ("sweep", "2,5"), ("sweep", "-2"), ("train_documents", -1),
                       ("train_documents", "six"), ("held_out_documents", -2),
                       ("layers", 0), ("occurrences", 0), ("hidden_size", -1),
                       ("context_encoder", "gru"), ("most_tokens", 2), ("model", 3)],
    paragraph_pretraining: [("head", "ie_1"), ("head_layers", "relu"),
                            ("same_paragraph", 0), ("same_document", -1), ("sentence_length", 1),
                            ("mask_probability", "0.15"), ("precision", "half"), ("train_clusters", -1)],
    answer_selection: [("train_on", "some"), ("held_out_stories", 1), ("train_questions", -1),
                       ("candidates", 1), ("head_layers", "mlp"),
                       ("pairwise_length", 1), ("seeds", 0), ("patience", -1), ("learning_rate", "2e-6")],
    fact_verification: [("evidence", "golden"), ("evidence_sentences", 0), ("train_stories", 1),
                        ("sentence_length", 1), ("parallel", "4")],
    attention_analysis: [("pairs", 0), ("split", "validation"), ("seed", 0.5)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("experiment", "name", "value"),
    [
        pytest.param(experiment, *given, id=f"{experiment.__name__.rpartition('.')[2]}-{given}")
        for experiment, values in OUTSIDE.items()
        for given in values
    ],
)
def test_a_value_outside_is_refused(experiment: Any, name: str, value: Any):
    with pytest.raises(ParameterError, match=rf"^{name} is [^\n]*$"):
        experiment.Settings(**{name: value})


# Values that do not go together, or that name nothing there is, and what is said of them.
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (pretraining, {"variant": "longformer", "model": "some/folder"},
     "variant is 'longformer', which is the base itself: 'some/folder' has a language-model head"),
    (pretraining, {"train_clusters": 0}, "train_clusters is 0, but storyworld has no end"),
    (coreference, {"predicted_topics": "x.json", "topic_level": "topic"}, "set it to 'predicted'"),
    (coreference, {"threshold_by": "unlabelled"}, "which needs a run's threshold, but trained is ''"),
    (document_matching, {"max_length": 96, "window": 128}, "wider than the longest sequence"),
    (multihop_qa, {"systems": "longformer cdml"}, "systems names 'cdml'; choose among longformer"),
    (multihop_qa, {"systems": " "}, "systems names nothing"),
    (multihop_qa, {"max_length": 96, "window": 128}, "wider than the longest sequence"),
    (multihop_qa, {"dev_from_train": 2}, "dev_from_train is of a folder"),
    (document_tagging, {"systems": "bert-lstm Doc-ARC"},
     "systems names 'Doc-ARC'; choose among bert-lstm, doc-arc, dyn"),
    (document_tagging, {"systems": ""}, "systems names nothing; choose among"),
    (paragraph_pretraining, {"same_document": 0, "other_documents": 0}, "there must be a wrong candidate"),
    (paragraph_pretraining, {"mask_probability": -0.1}, "masking probability is -0.1"),
    (paragraph_pretraining, {"batch_size": 5, "micro_batch_size": 2}, "must be a multiple"),
    (paragraph_pretraining, {"steps": 10, "warmup_steps": 10}, "must be fewer than steps"),
    (answer_selection, {"systems": "pairwise joint"},
     "systems names 'joint'; choose among pairwise, joint-ie"),
    (answer_selection, {"systems": "joint-ie mspp-ie"},
     "name pairwise, whose best candidates are ranked anew"),
    (answer_selection, {"systems": "pairwise"}, "and at least one of joint-ie, joint-ae, mspp-ie, mspp-ae"),
    (answer_selection, {"systems": ""}, "systems is ''; name pairwise"),
    (fact_verification, {"evidence": "gold"}, "evidence is 'gold'; storyworld has retrieved alone"),
    (fact_verification, {"systems": "joint-ei"},
     "systems names 'joint-ei'; choose among claim-only, pairwise-max"),
    (fact_verification, {"systems": " "}, "systems names nothing; choose among"),
]  # fmt: skip


@pytest.mark.parametrize(("experiment", "given", "message"), REFUSED)
def test_values_that_do_not_go_together_are_refused(experiment: Any, given: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        experiment.Settings(**given)
