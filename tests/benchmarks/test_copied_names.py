"""Names that only the other report has: which are hidden, and whether a model finds them."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import copied_names
import pytest
from copied_names import found_names, hidden_names

from cdlm_lab.data.records import Cluster, Document

FIRST = "Senators met on Monday. The bill of Warner passed, said Kaine. Later Kaine left with Blunt."
SECOND = "On Monday a bill by WARNER and Kaine was passed. It helps Richmond."


def cluster(*texts: str) -> Cluster:
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)]
    return Cluster(id="one", documents=tuple(documents))


def test_a_name_stands_once_in_its_report_and_also_in_the_other():
    hidden = sorted(hidden_names([cluster(FIRST, SECOND)], words=99, most=9))
    assert [(one.name, one.blanked.find("[MASK]")) for one in hidden] == [
        ("Kaine", SECOND.index("Kaine")),  # it stands twice in the first
        ("Monday", SECOND.index("Monday")),
        ("Monday", FIRST.index("Monday")),
        ("Warner", FIRST.index("Warner")),
    ]
    assert hidden[0].other == FIRST


def test_few_names_are_drawn_alike_each_time_and_short_reports_have_none():
    drawn = [*hidden_names([cluster(FIRST, SECOND)], words=99, most=1)]
    assert len(drawn) == 1
    assert drawn == [*hidden_names([cluster(FIRST, SECOND)], words=99, most=1)]
    assert [*hidden_names([cluster("", SECOND), cluster(FIRST, "A fire.")], words=99, most=2)] == []


class Copier:
    """Fills a blank with the first town of the other report, and with nothing without one."""

    def fill(self, texts: list[str]) -> list[SimpleNamespace]:
        towns = re.findall(r"of (\w+)", " ".join(texts[1:]))
        return [SimpleNamespace(words=[SimpleNamespace(word=word.lower()) for word in towns[:1]])]


def test_a_name_is_found_if_it_is_the_first_word_whatever_its_case():
    (name,) = hidden_names([cluster("The town of Ryde burned.", "Half of Ryde burned.")], words=9, most=1)
    items = found_names(Copier(), [name, name._replace(name="Cowes")], system="copier")
    assert items.set_index(["system", "item"])["num"].to_dict() == {
        ("copier", "one/Ryde"): 1,
        ("copier", "one/Cowes"): 0,
        ("copier, its report alone", "one/Ryde"): 0,
        ("copier, its report alone", "one/Cowes"): 0,
    }


def test_models_are_measured_beside_each_other_and_beside_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "names.json"
    models = ["cdlm=storyworld/cdlm", "local=storyworld/local-cdlm"]
    copied_names.main(["storyworld", *models, "--clusters", "3", "--words", "50", "--json", str(file)])
    told = json.loads(file.read_text())
    compared = [(row["a"], row["b"]) for row in told["comparisons"]]
    alone = [(name, f"{name}, its report alone") for name in ("cdlm", "local")]
    assert compared == [("cdlm", "local"), *alone]
    assert {row["n"] for row in told["scores"]} == {told["names"]}
    assert "local, its report alone" in capsys.readouterr().out
