"""The systems of fact verification, as notebook 10 names them (Di Liello et al. 2022, "MSPP", Table 8).

`claim-only` is ours: the joint model without any evidence. What it gets right the claims give away by
themselves; only what others get right beyond that was read in the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdlm_lab.models.pooled_pairs import POOLINGS
from cdlm_lab.parameters import ParameterError

LEFT_OUT = "share in the verdict: by how much its label falls without the sentence"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSystem:
    """What labels claims.

    Attributes:
        name, label: as a parameter and as in tables.
        paper: its name in `widgets.verification_table.PAPER_VERIFICATION`, or any other.
        head: `max` or `weighted_sum`, which pool pairs (see models/pooled_pairs.py), or `ie_1` or `ae_1`,
            which read all at once (see models/joint_head.py).
        pretrained: head of the pre-training with paragraphs, `ie` or `ae`; "" = the plain encoder.
        reads_evidence: False = it sees the claim alone.
        shares: what the shares of the evidence are; "" = there are none.
    """

    name: str
    label: str
    paper: str
    head: str
    pretrained: str = ""
    reads_evidence: bool = True
    shares: str = LEFT_OUT

    @property
    def pairwise(self) -> bool:
        """True if it reads one sentence of evidence at a time."""
        return self.head in POOLINGS


CLAIM_SYSTEMS = {
    system.name: system
    for system in (
        ClaimSystem(
            name="claim-only",
            label="claim only",
            paper="",
            head="ie_1",
            reads_evidence=False,
            shares="",
        ),
        ClaimSystem(
            name="pairwise-max",
            label="pairwise, max",
            paper="pairwise-max",
            head="max",
            shares="share of the dimensions in which the sentence is largest",
        ),
        ClaimSystem(
            name="pairwise-sum",
            label="pairwise, weighted sum",
            paper="pairwise-weighted_sum",
            head="weighted_sum",
            shares="weight in the sum",
        ),
        *(
            ClaimSystem(
                name=f"joint-{head}",
                label=f"joint {head.upper()}_1",
                paper=f"joint-{head}_1",
                head=f"{head}_1",
            )
            for head in ("ie", "ae")
        ),
        *(
            ClaimSystem(
                name=f"mspp-{pretrained}-{head}",
                label=f"MSPP {pretrained.upper()}_k + {head.upper()}_1",
                paper=f"mspp-{pretrained}_k-{head}_1",
                head=f"{head}_1",
                pretrained=pretrained,
            )
            for pretrained in ("ie", "ae")
            for head in ("ie", "ae")
        ),
    )
}


def claim_systems(names: str) -> tuple[ClaimSystem, ...]:
    """The systems of a list of names separated by spaces, in the order of the paper's tables.

    Raises:
        ParameterError: an unknown name, or none.
    """
    asked = names.split()
    if not asked or (unknown := [name for name in asked if name not in CLAIM_SYSTEMS]):
        told = repr(unknown[0]) if asked else "nothing"
        raise ParameterError(f"systems names {told}; choose among {', '.join(CLAIM_SYSTEMS)}")
    return tuple(system for name, system in CLAIM_SYSTEMS.items() if name in asked)


def compared_pairs(systems: tuple[ClaimSystem, ...]) -> list[tuple[ClaimSystem, ClaimSystem]]:
    """Which systems are tested against which, the second being what the first is held against: joint reading
    against the last pairwise one, MSPP against the same head without it, all that read evidence against what
    does not."""
    by_name = {system.name: system for system in systems}
    pairwise = [system for system in systems if system.pairwise][-1:]
    pairs = []
    for system in systems:
        joint = system.reads_evidence and not system.pairwise
        others = pairwise if joint else []
        if system.pretrained:
            others = [*others, by_name.get(f"joint-{system.head.removesuffix('_1')}")]
        if system.reads_evidence:
            others = [*others, by_name.get("claim-only")]
        pairs += [(system, other) for other in others if other]
    return pairs
