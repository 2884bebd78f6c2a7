"""Writes `cdlm_lab/INTERFACE.md`, the page of the public interface, from signatures and docstrings:

.venv/bin/python .make/interface.py
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import cdlm_lab
from cdlm_lab.batch import command

PAGE = Path(__file__).resolve().parents[1] / "cdlm_lab" / "INTERFACE.md"
# The modules of what `load` returns, and of the answers of its verbs.
ASKED = {
    "Language models (notebooks 01, 02, 08)": ("cdlm_lab.apply.language", "cdlm_lab.apply.results"),
    "Coreference (03)": ("cdlm_lab.tasks.coreference.ask",),
    "Matching and alignment of documents (04, 05)": ("cdlm_lab.tasks.matching.ask",),
    "Questions (06)": ("cdlm_lab.tasks.multihop.ask",),
    "Names and mentions (07)": ("cdlm_lab.tasks.tagging.ask",),
    "Answers and claims (09, 10)": ("cdlm_lab.tasks.joint.ask",),
}
HEAD = """\
# The public interface of cdlm_lab

Made from docstrings by `.make/interface.py`; a test holds it to them. [README.md](README.md) has examples.
"""


def page() -> str:
    """The page, in Markdown."""
    parts = [HEAD, inspect.getdoc(cdlm_lab).partition("\n\n")[2]]
    parts.append("## Functions")
    parts += [_described(name, getattr(cdlm_lab, name)) for name in cdlm_lab.__all__]
    for title, modules in ASKED.items():
        parts.append(f"## {title}")
        for module in map(import_module, modules):
            parts += [_class_described(one) for one in _classes(module)]
    parts += ["## Commands", *_commands()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _described(name: str, what: Any, *, level: int = 3) -> str:
    """A heading, the signature, and the docstring as it stands."""
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(what)))
    signature = signature.replace("(self, ", "(").replace("(self)", "()")
    return f"{'#' * level} {name}\n\n```python\n{name}{signature}\n```\n\n{_prose(what)}"


def _prose(what: Any) -> str:
    text = inspect.getdoc(what) or ""
    head, found, rest = text.partition("\n\nArgs:\n")
    listed = re.sub(r"^ {4}(?=\S)", "- ", rest, flags=re.MULTILINE)
    return f"{head}\n\n{re.sub(r'^ {8}', '  ', listed, flags=re.MULTILINE)}".strip() if found else text


def _classes(module: Any) -> Iterator[type]:
    """The public classes of a module, in its order, models first."""
    own = [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__]
    shown = [one for one in own if not one.__name__.startswith("_") and inspect.getdoc(one)]
    yield from sorted(shown, key=lambda one: not one.__name__.endswith("Model"))


def _class_described(one: type) -> str:
    parts = [f"### {one.__name__}", _prose(one)]
    if is_dataclass(one) and not one.__name__.endswith("Model"):
        named = ", ".join(f"`{field.name}`" for field in fields(one) if field.repr)
        parts.append(f"Fields: {named}." if named else "")
    methods = [name for name, what in vars(one).items() if inspect.isfunction(what) and name[0] != "_"]
    if one.__name__.endswith("Model"):
        parts += [_described(name, getattr(one, name), level=4) for name in methods]
    elif methods:
        parts.append("Methods: " + ", ".join(f"`{name}`" for name in methods) + ".")
    return "\n\n".join(filter(None, parts))


def _commands() -> Iterator[str]:
    """Each command of `cdlm-lab`, with its arguments."""
    (sub,) = (one for one in command._parser()._actions if isinstance(one, argparse._SubParsersAction))
    said = {one.dest: one.help for one in sub._choices_actions}
    for name, parser in sub.choices.items():
        lines = [f"### cdlm-lab {name}", said.get(name) or "", parser.description or ""]
        rows = []
        for action in parser._actions:
            if action.help is None or action.dest == "help" or action.help == argparse.SUPPRESS:
                continue
            names = ", ".join(action.option_strings) or (action.metavar or action.dest)
            value = action.metavar if action.option_strings and action.nargs != 0 else ""
            shown = f"{names} {value or ''}".strip()
            rows.append(f"- `{shown}`: {' '.join((action.help % vars(action)).split())}")
        yield "\n\n".join(filter(None, [*dict.fromkeys(lines), "\n".join(rows)]))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: {len(page().splitlines()):,} lines")
