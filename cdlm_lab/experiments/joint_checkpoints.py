"""Models pretrained with paragraphs (MSPP), which notebook 08 leaves and notebooks 09 and 10 fine-tune."""

from __future__ import annotations

from pathlib import Path

from cdlm_lab.models.joint_head import paragraph_head
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report.folder import ASIDE
from cdlm_lab.training.saved_model import MODEL_FOLDER


def paragraph_checkpoint(given: str, *, head: str) -> str:
    """The model that was pretrained with a head.

    Args:
        given: the parameter `mspp`: a run folder of notebook 08, a folder with its model, or a folder that
            holds several run folders, of which the head tells the one (those put aside by a grid do not
            count).
        head: `ie` or `ae`.

    Raises:
        ParameterError: it is not there, not given, was pretrained with the other head, or there are several.
            A model without a head of pre-training, as another program may have left, is taken at its word if
            it alone is named.
    """
    kind = f"{head}_k"
    remedy = f"give a run folder of notebook 08 that was pretrained with {kind}, or leave out its systems"
    if not given:
        raise ParameterError(f'mspp is ""; {remedy}')
    if alone := next(filter(_is_model, (Path(given) / MODEL_FOLDER, Path(given))), None):
        pretrained = _kind(alone)
        if pretrained not in (kind, None):
            raise ParameterError(f"mspp is {given!r}, which was pretrained with {pretrained}; {remedy}")
        return str(alone)
    folders = (folder for folder in sorted(Path(given).glob("*/")) if ASIDE not in folder.name)
    models = (folder / MODEL_FOLDER for folder in folders)
    found = [model for model in models if _is_model(model) and _kind(model) == kind]
    if not found:
        raise ParameterError(f"mspp is {given!r}, where there is no model pretrained with {kind}; {remedy}")
    if len(found) > 1:
        names = " and ".join(model.parent.name for model in found[:2])
        raise ParameterError(f"mspp is {given!r}, where {names} were pretrained with {kind}; keep one there")
    return str(found[0])


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def _kind(folder: Path) -> str | None:
    pretrained = paragraph_head(str(folder))
    return pretrained[0].kind if pretrained else None
