"""The five language models of CDLM's ablation (section 3, "Baseline LMs"), and what sets them apart.

| variant | documents of an example | tokens with global attention |
|---|---|---|
| longformer | unrelated ones: the base that all others start from, never shown a cluster | none |
| local-cdlm | of one cluster | none |
| rand-cdlm | of different clusters | the masked ones |
| prefix-cdlm | of one cluster | the first 15% |
| cdlm | of one cluster | the masked ones |

In the paper `longformer` is the published checkpoint and is not trained. Models that come without a fitted
language-model head (`tiny` from scratch, `minilm`, whose head is not published) first need that base: it is
what `longformer` trains here, on unrelated documents with local attention, as Longformer was. Perplexity of
each variant is measured with the globals it was trained with, always on documents of one cluster (section
3.1).

Wherever a task has global tokens (Tables 3 to 6), "the global attention weights used by the underlying
Longformer and by Local CDLM are initialized to the values of their pretrained local attention weights"
(section 3). The models of notebook 01 are saved so; a checkpoint of others, as the published Longformer, may
have global weights of its own, which `reset_globals` replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from cdlm_lab.models.conversion import copy_local_to_global
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.saved_model import MODEL_FOLDER


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How one of the five models is trained and read.

    `documents`: `related` or `random`, of the training examples; `global_policy`: `masked`, `prefix` or
    `none`, in training and evaluation alike.
    """

    name: str
    documents: str
    global_policy: str


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant(name="longformer", documents="random", global_policy="none"),
        Variant(name="local-cdlm", documents="related", global_policy="none"),
        Variant(name="rand-cdlm", documents="random", global_policy="masked"),
        Variant(name="prefix-cdlm", documents="related", global_policy="prefix"),
        Variant(name="cdlm", documents="related", global_policy="masked"),
    )
}


def variant_of(name: str) -> Variant:
    """The variant of that name. Raises ValueError naming all of them for any other name."""
    if name not in VARIANTS:
        raise ValueError(f"unknown variant {name!r}; choose one of {', '.join(VARIANTS)}")
    return VARIANTS[name]


def reset_globals(model: nn.Module, name: str) -> None:
    """Set the global projections of a variant that was trained without global tokens to its local ones, in
    place; others stay."""
    if variant_of(name).global_policy == "none":
        copy_local_to_global(model)


def checkpoint_of(encoders: str, name: str) -> str:
    """The encoder of a variant.

    Args:
        encoders: `storyworld` = the one that comes with the project; else a folder that has a folder of the
            variant's name, with the model in it or in its `model`.

    Raises:
        ParameterError: it is not there.
    """
    if encoders == "storyworld":
        return f"storyworld/{name}"
    for folder in (Path(encoders) / name / MODEL_FOLDER, Path(encoders) / name):
        if (folder / "config.json").is_file():
            return str(folder)
    raise ParameterError(
        f"encoders is {encoders!r}, where {name} is not; write storyworld, or a folder with a folder {name}"
    )
