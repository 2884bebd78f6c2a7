"""The tables of the four papers whose numbers the notebooks measure, in the order of the papers: which rows
and columns they have, and what the papers report."""

from __future__ import annotations

from collections.abc import Callable

from cdlm_lab.experiments.answer_systems import ANSWER_SYSTEMS
from cdlm_lab.experiments.claim_systems import CLAIM_SYSTEMS
from cdlm_lab.experiments.matching_systems import SYSTEMS
from cdlm_lab.experiments.paper_table_form import PaperTable, each, joined
from cdlm_lab.experiments.paper_tables_cdlm import ABLATION, PERPLEXITIES, coreference, questions, ranks
from cdlm_lab.experiments.reported_scores import ALIGNMENT, ANSWERS, CLAIMS, MATCHING, TAGGING
from cdlm_lab.experiments.result_cells import in_per_cent, in_thousandths, of_paper
from cdlm_lab.experiments.tagging_systems import TAG_SYSTEMS
from cdlm_lab.widgets import alignment_table, answer_table, matching_table
from cdlm_lab.widgets.tag_table import CORPUS_NAMES, PAPER_TAGGING
from cdlm_lab.widgets.theme import VARIANT_NAMES
from cdlm_lab.widgets.verification_table import PAPER_VERIFICATION

_OTHERS = {  # of Tables 3 and 8 of MSPP
    "gear": "GEAR",
    "kgat": "KGAT",
    "transformer-xh": "Transformer-XH",
    "pairwise-bert": "pairwise BERT",
    "joint-bert": "joint BERT",
    "domlin++": "DOMLIN++",
    "dream": "DREAM",
}


def _matching(name: str, title: str, systems: tuple[str, ...], *, accuracy: bool = True) -> PaperTable:
    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            numbers = matching_table.PAPER_MATCHING.get(system, {}).get(corpus)
            return joined(*(numbers if accuracy else numbers[1:])) if numbers else ""

        return text

    corpora = [
        corpus
        for corpus in matching_table.CORPORA
        if any(corpus in matching_table.PAPER_MATCHING.get(system, {}) for system in systems)
    ]
    below = "paper: Acc / F1" if accuracy else "paper: F1"
    return PaperTable(
        name=name,
        title=title,
        experiment=MATCHING,
        group="",
        systems={system: SYSTEMS[system].label for system in systems},
        columns=(
            *each({"accuracy": "accuracy", "f1": "F1"}, in_per_cent),
            *(of_paper(corpus, of_corpus(corpus), below=below) for corpus in corpora),
        ),
        others=("tf-idf",),
    )


def _alignment(setting: str, told: str) -> PaperTable:
    """The paper's numbers stand beside `released` alone, which scores unrelated pairs as its code does."""

    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            name, _, by = system.partition("/")
            numbers = alignment_table.PAPER_ALIGNMENT.get((name, by), {}).get(corpus, {})
            return " / ".join(
                alignment_table.mrr_in_words(value) if measure == "mrr" else f"{value:.1f}"
                for measure, value in numbers.items()
            )

        return text

    at = {name: heading for name, heading in alignment_table.MEASURES.items() if name != "mrr"}
    ways = [key for key in alignment_table.PAPER_ALIGNMENT if key[1]]
    systems = {f"{system}/{by}": f"{SYSTEMS[system].label}, {by}" for system, by in ways}
    papers = (
        of_paper("S2ORC", of_corpus("S2ORC"), below="paper: MRR / P@10 / P@5 / P@1"),
        of_paper("PAN", of_corpus("PAN"), below="paper: MRR / P@10 / P@5"),
    )
    return PaperTable(
        name=f"cda-4-5-{setting}",
        title=f"CDA, Tables 4 and 5: which sentence, {told}",
        experiment=ALIGNMENT,
        group=setting,
        systems={alignment_table.RANDOM: "Random (exact)"} | systems if setting == "released" else systems,
        columns=(
            *each({"mrr": "MRR"}, in_thousandths),
            *each(at, in_per_cent),
            *(papers if setting == "released" else ()),
        ),
        is_published=setting == "released",
    )


def _tagging(number: int, what: str) -> PaperTable:
    systems = [
        name
        for name in TAG_SYSTEMS
        if any(one.table == number for one in PAPER_TAGGING.get(name, {}).values())
    ]

    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            one = PAPER_TAGGING.get(system, {}).get(corpus)
            return f"{one.f1:.2f} ({one.deviation:.2f})" if one else ""

        return text

    return PaperTable(
        name=f"doc-arc-{number}",
        title=f"Doc-ARC, Table {number}: {what}",
        experiment=TAGGING,
        group="",
        systems={name: TAG_SYSTEMS[name].label for name in systems},
        columns=(
            *each({"precision": "precision", "recall": "recall", "f1": "span F1"}, in_per_cent),
            *(
                of_paper(shown, of_corpus(corpus), below="paper: F1 (SD)")
                for corpus, shown in CORPUS_NAMES.items()
            ),
        ),
        others=False,
    )


def _answers(name: str, title: str, ranking: str, papers: answer_table.Published) -> PaperTable:
    def of_corpus(corpus: str) -> Callable[[str], str]:
        def text(system: str) -> str:
            return " / ".join(
                f"{one.value:.1f}" + ("" if one.deviation is None else f" ({one.deviation:.1f})")
                for one in papers.get(system, {}).get(corpus, {}).values()
            )

        return text

    return PaperTable(
        name=name,
        title=title,
        experiment=ANSWERS,
        group=ranking,
        systems={system.published: system.label for system in ANSWER_SYSTEMS.values()},
        columns=(
            *each(answer_table.MEASURES, in_per_cent),
            *(
                of_paper(shown, of_corpus(corpus), below="paper: P@1 / MAP / MRR")
                for corpus, shown in answer_table.CORPUS_NAMES.items()
            ),
        ),
    )


def _claims(group: str, told: str) -> PaperTable:
    ours = {system.paper: system.label for system in CLAIM_SYSTEMS.values() if system.paper}

    def paper(system: str) -> str:
        one = PAPER_VERIFICATION.get(system)
        return joined(one.dev, one.test, decimals=2) if one else ""

    return PaperTable(
        name=f"mspp-3-8-{group}",
        title=f"MSPP, Tables 3 and 8: fact verification, {told}",
        experiment=CLAIMS,
        group=group,
        systems=ours,
        columns=(
            *each({"label_accuracy": "label accuracy"}, in_per_cent),
            of_paper("FEVER", paper, below="paper: dev / test"),
        ),
        only_published=_OTHERS,
        is_published=group == "test",
    )


PAPER_TABLES: tuple[PaperTable, ...] = (
    PERPLEXITIES,
    coreference("event", "events"),
    coreference("entity", "entities"),
    ABLATION,
    _matching(
        "cdlm-4", "CDLM, Table 4: do two documents belong together", tuple(VARIANT_NAMES), accuracy=False
    ),
    questions(),
    ranks(),
    _matching(
        "cda-2",
        "CDA, Table 2: do two documents belong together",
        ("bert-avg", "bert-han", "bert-han-shallow", "gru-han", "gru-han-shallow", "gru-han-deep"),
    ),
    _matching(
        "cda-3",
        "CDA, Table 3: the same with BERT trained along",
        ("bert-han-finetuned", "bert-han-finetuned-shallow"),
    ),
    _alignment("released", "scored with the unrelated pairs, as by the released code"),
    _alignment("joint", "jointly with whether the documents belong together"),
    _alignment("oracle", "of documents that are known to belong together"),
    _tagging(2, "named entities, encoder frozen"),
    _tagging(3, "named entities, small encoder trained along"),
    _tagging(4, "named entities, encoder fine-tuned"),
    _answers(
        "mspp-1", "MSPP, Table 1: choosing answers among all candidates", "all", answer_table.PAPER_TABLE_1
    ),
    _answers(
        "mspp-2-7",
        "MSPP, Tables 2 and 7: the best of pairwise, ranked anew",
        "reranked",
        answer_table.PAPER_TABLES_2_AND_7,
    ),
    *(
        _claims(group, told)
        for group, told in (("test", "test claims"), ("dev", "dev claims"), ("symmetric", "FeverSymmetric"))
    ),
)
