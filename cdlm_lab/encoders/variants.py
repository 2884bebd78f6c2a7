"""The five language models of CDLM's ablation (section 3, "Baseline LMs"), and how they differ:

| variant | documents of a training example | tokens with global attention |
|---|---|---|
| longformer | unrelated: the base that all others start from, never shown a cluster | none |
| local-cdlm | of one cluster | none |
| rand-cdlm | of different clusters | the masked ones |
| prefix-cdlm | of one cluster | the first 15% |
| cdlm | of one cluster | the masked ones |

In the paper `longformer` is the published checkpoint; here, models without a trained language-model head
(`tiny`, `minilm`) are first trained into it, as Longformer was. Perplexity of each variant is measured with
the global tokens it was trained with, on documents of one cluster (section 3.1). `conversion.reset_globals`
does what the paper says of tasks with global tokens (Tables 3 to 6): "the global attention weights used by
the underlying Longformer and by Local CDLM are initialized to the values of their pretrained local
attention weights" (section 3).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cdlm_lab.encoders.model_folder import MODEL_FOLDER, SYSTEMS_FOLDER
from cdlm_lab.errors import check_choice
from cdlm_lab.parameters import ParameterError, settings


class Variant(NamedTuple):
    """How one of the five models is trained and evaluated. `documents` of a training example: `related` or
    `random`; `global_policy`, in training and evaluation alike: `masked`, `prefix` or `none`."""

    name: str
    documents: str
    global_policy: str
    label: str  # the paper's name


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("longformer", "random", "none", "Longformer"),
        Variant("local-cdlm", "related", "none", "Local CDLM"),
        Variant("rand-cdlm", "random", "masked", "Rand CDLM"),
        Variant("prefix-cdlm", "related", "prefix", "Prefix CDLM"),
        Variant("cdlm", "related", "masked", "CDLM"),
    )
}
VARIANT_NAMES = {variant.name: variant.label for variant in VARIANTS.values()}


@settings
class Checkpoints:
    """The checkpoint of each variant: a folder, a hub name, or one that ships with the project; "" leaves the
    variant out."""

    longformer: str = "storyworld/longformer"
    local_cdlm: str = "storyworld/local-cdlm"
    rand_cdlm: str = "storyworld/rand-cdlm"
    prefix_cdlm: str = "storyworld/prefix-cdlm"
    cdlm: str = "storyworld/cdlm"

    def __post_init__(self) -> None:
        if not self.checkpoints:
            raise ParameterError("every model is left out; name at least one")

    @property
    def checkpoints(self) -> dict[str, str]:
        """Variant -> checkpoint, in the paper's order, without those that are left out."""
        named = {variant: getattr(self, variant.replace("-", "_")) for variant in VARIANTS}
        return {variant: where for variant, where in named.items() if where}


def variant_name(name: str) -> str:
    """The paper's name of a variant (`prefix-cdlm`: `Prefix CDLM`), or another name as it is."""
    return VARIANT_NAMES.get(name, name)


def variant_of(name: str) -> Variant:
    """The variant of that name. Raises ValueError, listing all names, for an unknown one."""
    check_choice("variant", name, VARIANTS)
    return VARIANTS[name]


def checkpoint_of(encoders: str, name: str) -> str:
    """The encoder checkpoint of a variant. For `storyworld`, the one that ships with the project; otherwise
    the first that exists of `<encoders>/<name>/model`, `<encoders>/<name>`, the model with seed 0 of a run
    that trained the variant, `encoders` itself, and `<encoders>-<name>/model`, or with `_`, as in the runs of
    a grid. Raises ParameterError if there is none."""
    if encoders == "storyworld":
        return f"storyworld/{name}"
    given = Path(encoders)
    run = given / SYSTEMS_FOLDER / f"{name}-0" / MODEL_FOLDER
    runs = [Path(f"{encoders}{mark}{name}", MODEL_FOLDER) for mark in "-_"]
    for folder in (given / name / MODEL_FOLDER, given / name, run, given, *runs):
        if (folder / "config.json").is_file():
            return str(folder)
    raise ParameterError(
        f"encoders is {encoders!r}, where {name} is not; write storyworld, or a folder with a folder {name}"
    )
