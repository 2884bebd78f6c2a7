"""The systems of document-attentive tagging, as notebook 07 names them (Doc-ARC section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from cdlm_lab.parameters import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSystem:
    """What reads and tags sentences.

    Attributes:
        name, label: as a parameter and as in tables.
        trains_encoder: False = the encoder is frozen and its encodings are kept on disk ("static"); True = it
            is trained with the rest ("dynamic").
        context: whether words attend to their occurrences elsewhere in the document.
        sequence_encoder: whether a biLSTM stands between encodings and tags.
        small: True = `small_encoder` of the settings, False = `encoder`.
    """

    name: str
    label: str
    trains_encoder: bool
    context: bool
    sequence_encoder: bool = True
    small: bool = False


TAG_SYSTEMS = {
    system.name: system
    for system in (
        TagSystem(name="bert-lstm", label="BERT + LSTM", trains_encoder=False, context=False),
        TagSystem(name="doc-arc", label="Doc-ARC", trains_encoder=False, context=True),
        TagSystem(
            name="dynamic-bert",
            label="small BERT, fine-tuned",
            trains_encoder=True,
            context=False,
            sequence_encoder=False,
            small=True,
        ),
        TagSystem(
            name="dynamic-bert-lstm",
            label="small BERT + LSTM, fine-tuned",
            trains_encoder=True,
            context=False,
            small=True,
        ),
        TagSystem(
            name="dynamic-doc-arc", label="Doc-ARC, dynamic", trains_encoder=True, context=True, small=True
        ),
        TagSystem(
            name="bert", label="BERT, fine-tuned", trains_encoder=True, context=False, sequence_encoder=False
        ),
    )
}


def tag_systems(names: str) -> tuple[TagSystem, ...]:
    """The systems of a list of names separated by spaces, in the order of the paper's tables.

    Raises:
        ParameterError: an unknown name, or none.
    """
    asked = names.split()
    if not asked or (unknown := [name for name in asked if name not in TAG_SYSTEMS]):
        told = repr(unknown[0]) if asked else "nothing"
        raise ParameterError(f"systems names {told}; choose among {', '.join(TAG_SYSTEMS)}")
    return tuple(system for name, system in TAG_SYSTEMS.items() if name in asked)
