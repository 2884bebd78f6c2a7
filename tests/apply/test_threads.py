"""One model that `load` returned, used by eight threads at once, answers as in one thread."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cdlm_lab.apply.language import LanguageModel
from cdlm_lab.apply.loading import load
from cdlm_lab.tasks.coreference.ask import CoreferenceModel
from cdlm_lab.tasks.tagging.ask import TaggingModel

THREADS, ROUNDS = 8, 2
PLACES = ("Telk", "Oskmere", "Brill", "Ansby", "Varn", "Holm", "Quist", "Dorn")
MARKED = "A <m>fire</m> broke out in the old mill of {} on Monday. One man was <m>arrested</m>."
REPORT = "A fire broke out in the mill of {}. Police said that 14 people were hurt. The mayor of {} spoke."


def reports() -> list[str]:
    """Make a text for each thread, of other words and another length."""
    return [" ".join([REPORT.format(place, place)] * (1 + n % 3)) for n, place in enumerate(PLACES)]


def assert_shared(ask: Callable[[str], Any], texts: list[str], *, alone: Callable[[str], Any]) -> None:
    """`ask`: the method of a model that has not been used, so that what it makes on first use is made by
    all threads at once; `alone`: that of another."""
    expected = [plain(alone(text).as_json()) for text in texts]
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(ROUNDS):
            found = [plain(one.as_json()) for one in pool.map(ask, texts)]
            assert found == expected


def plain(value: Any) -> Any:
    """Numbers up to the last digits, in whatever holds them."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return pytest.approx(value, rel=1e-4, abs=1e-4) if isinstance(value, float) else value


METHODS: dict[str, Callable[[LanguageModel, str], Any]] = {
    "encode": lambda model, text: model.encode([text, "Votes were counted again."]),
    "fill": lambda model, text: model.fill([text, "The mayor of [MASK] spoke."], top=2, pieces=2),
    "attention": lambda model, text: model.attention([text, "The fire was put out."], (0, "fire")),
}


@pytest.mark.usefixtures("often_switched")
@pytest.mark.parametrize("method", METHODS)
def test_of_a_language_model(cdlm: LanguageModel, method: str) -> None:
    ask, new = METHODS[method], load("storyworld/cdlm")
    assert_shared(lambda text: ask(new, text), reports(), alone=lambda text: ask(cdlm, text))


@pytest.mark.usefixtures("often_switched")
def test_of_coreference(coreference: CoreferenceModel) -> None:
    new = load("storyworld/coreference")

    def asked(model: CoreferenceModel, text: str) -> Any:
        return model.clusters({"police": MARKED.format(text), "paper": f"The <m>blaze</m> in {text} ended."})

    assert_shared(lambda text: asked(new, text), [*PLACES], alone=lambda text: asked(coreference, text))


@pytest.mark.usefixtures("often_switched")
@pytest.mark.parametrize("system", ["", "bert-lstm"])
def test_of_tagging(tagging: TaggingModel, system: str) -> None:
    new, alone = (load("storyworld/tagging", system=system) for _ in range(2))
    assert_shared(new.tag, reports(), alone=alone.tag)


def test_a_model_that_is_on_its_device_is_not_touched() -> None:
    """Moving it again would empty its GRUs' lists of weights for a moment, and other threads would fail."""
    model = load("storyworld/matching", system="gru-han-deep")
    gru = model.matcher.model.encoder.word_gru
    model.score("A fire broke out.", "The mill burned.")
    before = gru._flat_weight_refs
    model.score("A fire broke out.", "The mill burned.")
    assert gru._flat_weight_refs is before


TASKS: dict[str, Callable[[Any, str], Any]] = {
    "matching": lambda model, text: model.align(text, "The mill burned. It rained."),
    "gru-han-deep": lambda model, text: model.align(text, "The mill burned."),
    "answers": lambda model, text: model.rank("Where was the fire?", [text, "It rained.", "In a mill."]),
    "claims": lambda model, text: model.verify(
        f"It was in {text.split()[9]}", ["14 were hurt.", "It rained."]
    ),
    "questions": lambda model, text: model.answer("Where was it?", {"news": text, "b": "It rained."}),
}


@pytest.mark.usefixtures("often_switched")
@pytest.mark.parametrize("task", TASKS)
def test_of_models_for_tasks(task: str) -> None:
    system, ask = "gru-han-deep" if task == "gru-han-deep" else "", TASKS[task]
    new, alone = (load(f"storyworld/{'matching' if system else task}", system=system) for _ in range(2))
    assert_shared(lambda text: ask(new, text), reports(), alone=lambda text: ask(alone, text))
