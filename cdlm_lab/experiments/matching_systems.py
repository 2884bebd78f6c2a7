"""The systems of notebooks 04 and 05: Zhou et al. 2020 ("CDA"), section 5.1, and CDLM section 3.3."""

from __future__ import annotations

from dataclasses import dataclass

from cdlm_lab.experiments.variants import VARIANTS
from cdlm_lab.models.hierarchical import CDA
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.theme import variant_name


@dataclass(frozen=True, kw_only=True)
class System:
    """One way to tell whether two documents belong together.

    Attributes:
        name: as in the `systems` parameter.
        label: as the papers write it.
        about: what it is, for people.
        encoder: `words` (compares words, learns nothing but a threshold), `gru`, `vectors` or `average` (as
            of `HierarchicalConfig`), or `longformer` (reads both documents at once).
        cda: cross-document attention, `none`, `shallow` or `deep`.
        finetuned: the sentence encoder is trained along.
        against: the system that it is tested against where both are run; "" = none.
    """

    name: str
    label: str
    about: str
    encoder: str
    cda: str = "none"
    finetuned: bool = False
    against: str = ""

    @property
    def trains_encoder(self) -> bool:
        """True if a pretrained encoder is trained along, which takes long."""
        return self.encoder == "longformer" or self.finetuned


def _system(name: str, about: str, encoder: str, *, label: str = "", against: str = "") -> System:
    """What the name does not say of a system; the rest it does."""
    cda = next((cda for cda in CDA if name.endswith(f"-{cda}")), "none")
    plain = name.removesuffix(f"-{cda}").removesuffix("-finetuned")
    finetuned = "-finetuned" in name
    label = label or plain.upper() + (f" + {cda.upper()}" if cda != "none" else "")
    return System(
        name=name,
        label=f"{label}, fine-tuned" if finetuned else label,
        about=about,
        encoder=encoder,
        cda=cda,
        finetuned=finetuned,
        against=against,
    )


_TUNED = "bert-han-finetuned"
SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        _system("tf-idf", "how many words they share: a threshold, no model", "words", label="TF-IDF cosine"),
        _system("bert-avg", "a document is the mean of its sentences by frozen BERT", "average"),
        _system(
            "bert-han", "GRUs and attention over sentences by frozen BERT", "vectors", against="bert-avg"
        ),
        _system(
            "bert-han-shallow",
            "the same; each document is told of the other's sentences",
            "vectors",
            against="bert-han",
        ),
        _system(_TUNED, "as bert-han, BERT trained along", "vectors", against="bert-han"),
        _system(f"{_TUNED}-shallow", "as bert-han-shallow, BERT trained along", "vectors", against=_TUNED),
        _system("gru-han", "GRUs and attention over words, then over sentences", "gru"),
        _system(
            "gru-han-shallow",
            "the same; each document is told of the other's sentences",
            "gru",
            against="gru-han",
        ),
        _system(
            "gru-han-deep",
            "the same; each sentence is told of the other's sentences and words, too",
            "gru",
            against="gru-han-shallow",
        ),
        *(
            _system(
                name,
                "reads both documents at once"
                + ("" if name == "longformer" else "; pretrained as notebook 01 says"),
                "longformer",
                label=variant_name(name),
                against="" if name == "longformer" else "longformer",
            )
            for name in VARIANTS
        ),
    )
}


def system_rows() -> list[list[str]]:
    """Name and meaning of every system, as cells of HTML."""
    return [[f"<code>{one.name}</code>", f"<b>{one.label}</b>: {one.about}"] for one in SYSTEMS.values()]


def systems_named(names: str) -> tuple[System, ...]:
    """The systems of a parameter: names separated by spaces, in the order of SYSTEMS.

    Raises:
        ParameterError: none are named, or one that is unknown.
    """
    wanted = names.split()
    if not wanted:
        raise ParameterError(f"systems is empty; name some of {', '.join(SYSTEMS)}")
    for name in wanted:
        if name not in SYSTEMS:
            raise ParameterError(f"systems names {name!r}; choose among {', '.join(SYSTEMS)}")
    return tuple(system for name, system in SYSTEMS.items() if name in wanted)
