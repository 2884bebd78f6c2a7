"""How much a report's numbers were measured on."""

from __future__ import annotations

from cdlm_lab.experiments.reported_scores import (
    ALIGNMENT,
    ANSWERS,
    ATTENTION,
    CLAIMS,
    COREFERENCE,
    MATCHING,
    PERPLEXITY,
    QUESTIONS,
    TAGGING,
)
from cdlm_lab.report import Report
from cdlm_lab.widgets.rank_table import pairs_in_words


def size_of(report: Report, group: str) -> tuple[int, str]:
    """A number, to tell the larger of two, and in words; `group` as of `ReportedRow`.

    Raises:
        KeyError, TypeError, ValueError: the report is not as its notebook writes it, or fills no table.
    """
    data, scores, name = report.data, report.scores, report.name
    if name == PERPLEXITY:
        score = next(iter(scores.values()))
        return score["tokens"], f"{score['n']:,} clusters, {score['tokens']:,} masked tokens"
    if name == COREFERENCE:
        pairs = data["pairs_scored"]["test"]
        return pairs, f"{len(data['topics']['test']):,} topics, {pairs:,} pairs"
    if name in (MATCHING, ALIGNMENT):
        pairs, clusters = (
            data[what]["test"] if name == MATCHING else data[what] for what in ("pairs", "clusters")
        )
        return pairs, f"{pairs:,} pairs, {clusters:,} clusters of them"
    if name == QUESTIONS:
        questions = data["questions"]["test"]
        return questions, f"{questions:,} questions, {data['clusters']['test']:,} clusters of them"
    if name == TAGGING:
        return data["documents"]["test"], str(data["facts"]["test"])
    if name == ANSWERS:
        candidates, _ = data["candidates"]["test"], data["format"]["test"]
        return candidates, f"{data['questions']['test']:,} questions, {candidates:,} candidates"
    if name == CLAIMS:
        claims = data["scored"][group]
        return claims, f"{claims:,} claims, {data['groups'][group]:,} groups of them"
    if name == ATTENTION:
        counts = [score["n"] for key, score in scores.items() if "/gap/" not in key]
        told = f"{pairs_in_words(counts)} of each sort and kind, {len(data['topics']):,} topics"
        return sum(counts), told
    raise ValueError(f"no table is filled from reports of {name!r}")
