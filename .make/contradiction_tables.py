"""The tables of data/results/contradictions.md: what a paper claims, and what our runs say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cdlm_lab.results.claims import (
    as_effect,
    claims_of,
    mark_of,
    pair_of,
    power_of,
    reports_of,
    tested_of,
    verdict_of,
)
from cdlm_lab.results.reports import PERPLEXITY, size_of
from cdlm_lab.views import tables
from cdlm_lab.views.tables import Cell, Heading, ScoreTable

# Marker -> the claims of `claims.csv` that it shows, each by how it begins, and the data measured on.
CONTRADICTIONS: Mapping[str, Mapping[str, str]] = {
    "contradiction-related": {
        "Related documents help a global": "news, mined clusters, 1 M tokens",
        "Global masked tokens help without": "news, mined clusters, 1 M tokens",
        "Global masked tokens help (CDLM": "news, mined clusters, 1 M tokens",
    },
    "contradiction-long-texts": {
        "Global masked tokens help without": "news, 4,096 tokens; news, 1,024 tokens",
        "Global masked tokens help (CDLM": "news, 4,096 tokens; news, 1,024 tokens",
        "Global masked tokens help where": "news, 4,096 tokens",
    },
    "contradiction-matching": {
        "CDLM is above Longformer at matching": "SciSumm; SciSumm, models from mined clusters"
    },
    "contradiction-ranks": {
        "Global attention in training ranks": "ECB+, models from mined clusters; ECB+; "
        "ECB+, models of 1,024 tokens; storyworld",
    },
    "contradiction-joint-reading": {
        "Joint reading without": "WikiQA; WikiQA, equal updates; TREC-QA; "
        "TREC-QA, its own training questions; storyworld",
        "With it joint reading": "WikiQA; TREC-QA; storyworld",
    },
    "contradiction-same-word": {
        "The same word elsewhere": "JNLPBA; JNLPBA, 120 articles; JNLPBA, linear context encoder; LitBank; "
        "LitBank, linear context encoder",
        "Among words of high TF-IDF": "JNLPBA, top tenth; LitBank, top tenth",
    },
}


def contradiction_table(results: Path, name: str) -> ScoreTable:
    """Each claim of a marker: the paper's difference and ours, positive = as claimed, in points or, for
    perplexities, in percent; how many items and seeds that is, p after correction, and the verdict."""
    rows = []
    for start, corpora in CONTRADICTIONS[name].items():
        claims = [one for one in claims_of() if one["claim"].startswith(start)]
        rows += [_row(results, claims, corpus) for corpus in corpora.split("; ")]
    names = ("claimed", "measured on", "paper", "ours", "n", "seeds", "p", "there it")
    headings = [Heading(name=one, is_text=one not in ("paper", "ours", "seeds", "p")) for one in names]
    return ScoreTable(caption="", columns=headings, rows=[[Cell(text=text) for text in row] for row in rows])


def _row(results: Path, claims: list[dict[str, str]], corpus: str) -> list[str]:
    claim = next(one for one in claims if one["corpus"] == corpus)
    reports = reports_of(results, claim)
    better, _ = pair_of(reports, claim)
    tested = tested_of(reports, claim)
    papers = power_of(reports, tested, claim)[1]
    # positive where the system is better that is claimed to be
    sign = 1 if (tested["a"] == claim["better"]) is not (reports[0].name == PERPLEXITY) else -1
    gains = [as_effect(reports, claim, sign * tested[name]) for name in ("difference", "low", "high")]
    interval = f" ({min(gains[1:]):.1f} to {max(gains[1:]):.1f})" if len(reports) == 1 else ""
    return [
        claim["claim"],
        f"{corpus}, {claim['measure']}",
        "" if papers is None else f"{papers:+.1f}",
        f"{gains[0]:+.1f}{interval}",
        size_of(reports[0], claim["group"])[1].partition(" of ")[0],
        str(better.seeds or 1),
        tables.p_text(tested["p_holm"]),
        f"{verdict_of(reports, tested, claim)} {mark_of(reports, claim)}".strip(),
    ]
