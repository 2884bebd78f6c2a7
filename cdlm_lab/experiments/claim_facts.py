"""Before a run of notebook 10: which claims are verified with what evidence, and what training will cost."""

from __future__ import annotations

from functools import partial

import numpy as np

from cdlm_lab.examples.encode_candidates import EncodedClaims
from cdlm_lab.experiments.claim_corpora import label_counts
from cdlm_lab.experiments.fact_verification import VerificationRun
from cdlm_lab.experiments.parallel import time_told
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.training.batch_time import seconds_of_batch
from cdlm_lab.training.config import precision_told
from cdlm_lab.training.processes import Processes

LOOKED_AT = 500  # claims of a set that are put into pieces before the start


def facts(run: VerificationRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    return claim_facts(run) + training_facts(run)


def claim_facts(run: VerificationRun) -> list[tuple[str, str]]:
    """What is verified, what of it is cut, and labels that cannot be learned, as (name, text)."""
    tokenizer = run.verifier(run.systems[0], 0, trained=False).tokenizer
    rows = []
    for name, claims in run.claims.items():
        counts = label_counts(claims, run.labels)
        told = ", ".join(f"{count:,} {label}" for label, count in counts.items())
        if unknown := len(claims) - sum(counts.values()):
            told += f", {unknown:,} without label, which are not scored"
        evidence = [len(claim.evidence) for claim in claims]
        rows.append(
            (
                name,
                f"{len(claims):,} claims in {len({claim.group for claim in claims}):,} groups ({told}); "
                f"{np.mean(evidence):.1f} sentences of evidence each, {evidence.count(0):,} claims without",
            )
        )
        length = run.settings.verifiers.sentence_length
        rows.append((f"{name}: cut", _what_is_cut(EncodedClaims(claims[:LOOKED_AT], tokenizer), length)))
    trained = label_counts(run.claims["train"], run.labels)
    never = [label for label, count in trained.items() if not count]
    if never:
        rows.append(("never learned", f"no training claim is {', '.join(never)}: such claims are lost"))
    return rows


def _what_is_cut(encoded: EncodedClaims, length: int) -> str:
    sizes = np.array([len(pieces) for name in encoded for pieces in encoded[name]])
    lost = np.maximum(sizes - (length - 1), 0)
    if not lost.any():
        return "nothing"
    return (
        f"{(lost > 0).mean():.0%} of the sentences have more than {length - 1} pieces of words and lose "
        f"their end, {lost.sum() / sizes.sum():.0%} of all pieces (of {len(encoded):,} claims looked at)"
    )


def training_facts(run: VerificationRun) -> list[tuple[str, str]]:
    """What training each system takes, as (name, text); one batch of each is learned from to know that."""
    config = run.config_of(0)
    rows = [("precision of training", precision_told(config.precision))]
    seeds, processes = run.settings.training.seeds, Processes.of(run.settings.training.parallel)
    for system in run.systems:
        verifier = run.verifier(system, 0, trained=False)
        examples = verifier.examples(run.claims["train"][: config.micro_batch_size])
        chosen = [examples[number] for number in range(len(examples))]
        seconds, _ = seconds_of_batch(
            verifier.model, partial(verifier.collate, chosen), precision=config.precision
        )
        total = seconds * config.steps * config.batch_size / config.micro_batch_size
        rows.append(
            (
                system.label,
                f"{parameter_count(verifier.model) / 1e6:.1f} million parameters; {config.steps:,} updates "
                f"with {config.batch_size} claims, about {time_told(total, processes)}"
                f"{f'; times {seeds} seeds' if seeds > 1 else ''}",
            )
        )
    return rows
