"""The library follows the rules of house_rules.py, and each rule finds what it looks for."""

from pathlib import Path

import house_rules as rules
import pytest
from house_rules import Module, Rule

MODULES = rules.read_modules(Path(__file__).resolve().parents[2])


def test_the_library_is_read():
    groups = {module.group for module in MODULES}
    assert {"", "attention", "data", "examples", "models", "training", "metrics", "experiments"} <= groups


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_module_follows(rule: Rule):
    found = rules.all_faults(rule, MODULES)
    assert not found, "\n".join([f"{rule.__name__}: {rule.__doc__}", *found])


def test_a_fault_is_named_with_its_module_and_line():
    sound, broken = Module("cdlm_lab.data.a", "x = 1"), Module("cdlm_lab.data.b", "x = 1\neval('1')\nexec(x)")
    found = rules.all_faults(rules.unsafe_code, [broken, sound, broken])
    assert found == ["cdlm_lab.data.b:2: eval()", "cdlm_lab.data.b:3: exec()"] * 2


# rule, module, source, part of the one fault it must find
BROKEN = [
    (rules.upward_imports, "data.x", "from cdlm_lab.models import encoder", "data must not import models"),
    (rules.upward_imports, "data.x", "import cdlm_lab.metrics.ranking", "data must not import metrics"),
    (rules.upward_imports, "examples.x", "from ..training import trainer", "must not import training"),
    (rules.upward_imports, "models.x", "def f():\n    from cdlm_lab import training", "2: models must not"),
    (rules.upward_imports, "parameters", "from cdlm_lab.data import files", "must not import data"),
    (rules.upward_imports, "widgets.x", "import cdlm_lab.batch", "widgets must not import batch"),
    (rules.upward_imports, "extra.x", "", "no place in LAYERS"),
    (rules.foreign_imports, "data.x", "import torch.nn as nn", "without torch"),
    (rules.foreign_imports, "metrics.x", "from torch import Tensor", "without torch"),
    (rules.foreign_imports, "attention.x", "from transformers import x", "without transformers"),
    (rules.foreign_imports, "batch.x", "import snakemake", "without snakemake"),
    (rules.foreign_imports, "widgets.x", "from ..models import encoder", "without cdlm_lab.models"),
    (rules.unsafe_code, "data.x", "import pickle", "pickle"),
    (rules.unsafe_code, "data.x", "from torch import load", "torch.load"),
    (rules.unsafe_code, "data.x", "x = torch.load(p)", "torch.load()"),
    (rules.unsafe_code, "models.x", "torch.load(p, weights_only=True)", "torch.load()"),
    (rules.unsafe_code, "models.to_safetensors", "torch.load(p)", "torch.load()"),
    (rules.unsafe_code, "models.to_safetensors", "torch.load(p, weights_only=safe)", "torch.load()"),
    (rules.unsafe_code, "models.to_safetensors", "torch.load(p, weights_only=True)\n" * 2, "2: torch.load()"),
    (rules.unsafe_code, "data.x", "eval('1')", "eval()"),
    (rules.unsafe_code, "data.x", "f(trust_remote_code=True)", "trust_remote_code=True"),
    (rules.unsafe_code, "data.x", "f(allow_pickle=flag)", "allow_pickle=flag"),
    (rules.crowded_signatures, "data.x", "def f(*, a, b, c, d, e, f, g, h, i, j, k): ...", "11 parameters"),
    (rules.crowded_signatures, "data.x", "def f(a, b, c, d, e, f, g): ...", "takes 7 by position"),
    (rules.vague_names, "data.text_utils", "", "text_utils"),
    (rules.vague_names, "data.x", "class DataManager: ...", "DataManager"),
    (rules.vague_names, "data.x", "class BaseReader: ...", "BaseReader"),
    (rules.vague_names, "data.x", "class A:\n    def handle_it(self): ...", "2: handle_it"),
    (rules.state_at_import, "models.x", "GPU = torch.cuda.is_available()", "import time"),
    (rules.state_at_import, "models.x", "torch.manual_seed(0)", "import time"),
]


@pytest.mark.parametrize(("rule", "name", "source", "expected"), BROKEN)
def test_rule_finds(rule: Rule, name: str, source: str, expected: str):
    found = rules.faults(rule, Module(f"cdlm_lab.{name}", source))
    assert len(found) == 1, found
    assert expected in found[0]


def test_every_rule_is_tried():
    assert {rule for rule, *_ in BROKEN} == set(rules.RULES)


def test_the_top_of_the_package_imports_nothing():
    top = Module("cdlm_lab", "from cdlm_lab import data", package=True)
    assert rules.faults(rules.upward_imports, top) == ["1: cdlm_lab must not import data"]


SOUND = [
    (rules.upward_imports, "models.x", "from cdlm_lab.attention.layer import f\nfrom .encoder import g"),
    (rules.upward_imports, "data.x", "from cdlm_lab.parameters import f\nfrom cdlm_lab.data import files"),
    (rules.upward_imports, "benchmarks.x", "import cdlm_lab.widgets, cdlm_lab.models"),
    (rules.foreign_imports, "data.x", "import torchless"),
    (rules.unsafe_code, "models.x", "model.eval()\nf(trust_remote_code=False)\nload(x)"),
    (rules.unsafe_code, "models.to_safetensors", "torch.load(p, weights_only=True)"),
    (rules.vague_names, "data.x", "def rebase(): ...\ndef memory_of_process(handle): ..."),
    (
        rules.crowded_signatures,
        "models.x",
        "class M:\n    def forward(self, a, b, c, d, e, f, g, h, i, j, k): ...",
    ),
    (rules.state_at_import, "models.x", "def f():\n    return torch.cuda.is_available()"),
]


@pytest.mark.parametrize(("rule", "name", "source"), SOUND)
def test_rule_lets_pass(rule: Rule, name: str, source: str):
    assert rules.faults(rule, Module(f"cdlm_lab.{name}", source)) == []


def test_modules_do_not_import_each_other_in_a_circle():
    assert rules.import_cycle(MODULES) == []


def test_a_circle_is_found():
    a = Module("cdlm_lab.data.a", "from cdlm_lab.data import b")
    b = Module("cdlm_lab.data.b", "from .c import f")
    c = Module("cdlm_lab.data.c", "def f():\n    import cdlm_lab.data.a")
    assert rules.import_cycle([a, b, c]) == [f"cdlm_lab.data.{name}" for name in "abca"]
    assert rules.import_cycle([a, b]) == []
