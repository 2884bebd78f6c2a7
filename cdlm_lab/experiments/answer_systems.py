"""The systems that choose answers, as notebook 09 names them (Di Liello et al. 2022, "MSPP", Table 1)."""

from __future__ import annotations

from dataclasses import dataclass

from cdlm_lab.parameters import ParameterError

PAIRWISE = "pairwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSystem:
    """What ranks the candidates of a question.

    Attributes:
        name, label: as a parameter, and in tables and figures.
        published: name of its row in the paper's tables, as of `widgets.answer_table`.
        head: as of `JointHead`; `ie_1` reads one candidate at a time, the others k.
        pretrained: True = with MSPP, before it is fine-tuned.
        plain: the system that differs from it by pre-training alone; "" = none.
    """

    name: str
    label: str
    published: str
    head: str
    pretrained: bool = False
    plain: str = ""

    @property
    def is_joint(self) -> bool:
        """True = it reads several candidates at once."""
        return self.head != "ie_1"


ANSWER_SYSTEMS = {
    system.name: system
    for system in (
        AnswerSystem(name=PAIRWISE, label=PAIRWISE, published=PAIRWISE, head="ie_1"),
        AnswerSystem(name="joint-ie", label="joint IE_k", published="joint-ie_k", head="ie_k"),
        AnswerSystem(name="joint-ae", label="joint AE_k", published="joint-ae_k", head="ae_k"),
        AnswerSystem(
            name="mspp-ie",
            label="MSPP IE_k",
            published="mspp-ie_k",
            head="ie_k",
            pretrained=True,
            plain="joint-ie",
        ),
        AnswerSystem(
            name="mspp-ae",
            label="MSPP AE_k",
            published="mspp-ae_k",
            head="ae_k",
            pretrained=True,
            plain="joint-ae",
        ),
    )
}


def answer_systems(names: str) -> tuple[AnswerSystem, ...]:
    """The systems of a list of names separated by spaces, in the order of the paper's tables.

    Raises:
        ParameterError: an unknown name; not `pairwise`, or nothing but it.
    """
    asked = names.split()
    if unknown := [name for name in asked if name not in ANSWER_SYSTEMS]:
        raise ParameterError(f"systems names {unknown[0]!r}; choose among {', '.join(ANSWER_SYSTEMS)}")
    found = tuple(system for name, system in ANSWER_SYSTEMS.items() if name in asked)
    if PAIRWISE not in asked or len(found) < 2:
        raise ParameterError(
            f"systems is {names!r}; name pairwise, whose best candidates are ranked anew, and at least one "
            f"of {', '.join(name for name in ANSWER_SYSTEMS if name != PAIRWISE)}"
        )
    return found
