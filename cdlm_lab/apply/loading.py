"""`load`: from a name to a model object of the matching class.

A name is one that ships with the project (`storyworld/cdlm`), the folder of a run of notebooks 01 and 03 to
10, a folder with a checkpoint, `minilm`, or a name on the Hugging Face hub.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from cdlm_lab.apply.language import LanguageModel
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.encoders import checkpoint
from cdlm_lab.encoders.checkpoint import CheckpointError, default_device, read_config, shipped_names
from cdlm_lab.encoders.conversion import reset_globals
from cdlm_lab.encoders.encoder import load_encoder, load_language_model
from cdlm_lab.encoders.language_model import longest
from cdlm_lab.encoders.model_folder import (
    CONFIG_FILE,
    MODEL_FOLDER,
    NONE_SHIPPED,
    folder_of_name,
    name_of_folder,
)
from cdlm_lab.encoders.source_attention import predicts
from cdlm_lab.encoders.variants import VARIANTS, variant_of
from cdlm_lab.parameters import (
    RUN_FILE,
    ParameterError,
    local_path,
)
from cdlm_lab.runs.opened import model_of_run
from cdlm_lab.tasks.coreference.ask import CoreferenceModel, load_coreference
from cdlm_lab.tasks.coreference.found import Finder
from cdlm_lab.tasks.joint.answers import AnswerRun
from cdlm_lab.tasks.joint.ask import AnswerModel, ClaimModel, load_answers, load_claims
from cdlm_lab.tasks.joint.claims import VerificationRun
from cdlm_lab.tasks.matching.alignment import AlignmentRun
from cdlm_lab.tasks.matching.ask import MatchingModel, load_alignment, load_matching
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.multihop.ask import QuestionModel, load_questions
from cdlm_lab.tasks.multihop.experiment import MultihopRun
from cdlm_lab.tasks.tagging.ask import TaggingModel, load_tagging
from cdlm_lab.tasks.tagging.experiment import TaggingRun
from cdlm_lab.training.trained import (
    run_name,
    shipped_runs,
    trained_parameters,
    trained_run,
)

PRETRAINING, MADE_FILE = "pretraining", "made.json"
MENTIONS = "ecb/mentions"  # the tagger that finds mentions where none are marked
LONGEST, WINDOW = 512, 512  # of an encoder that is converted to a Longformer, unless it is shorter
Model = Any  # `LanguageModel`, or the model of a task


def load(
    name: str | os.PathLike[str] | Sequence[str],
    *,
    system: str = "",
    variant: str = "",
    max_length: int | None = None,
    window: int | None = None,
) -> Model:
    """A trained model that reads texts.

    Args:
        name: one that ships with the project, the folder of a run or of a checkpoint, or a name on the hub.
            Of several the first that is there, such as ["litbank/names", "runs/mine"].
        system: of a run with several, such as `joint-ie`; "" = the one whose answers its notebook shows, for
            answer selection and matching the one that was best on dev.
        variant: of a language model, which of CDLM's ablation it is: it determines which tokens are global
            when blanks are filled; "" = as its run says, or what stands beside its weights, or its name if it
            was released or shipped. If nothing says it, no blank is global, and a warning says so.
        max_length, window: of a language model; None = the checkpoint's own, at most 512 for an encoder that
            has to be converted.

    Raises ParameterError or CheckpointError, with a one-line message, if there is no usable model.
    """
    given = local_path(os.fspath(_first_here(name)), "the model")
    if (run := _run_of(given)) is not None:
        if run_name(run) in LANGUAGE_RUNS:
            form = {"max_length": max_length, "window": window}
            made = trained_parameters(run)
            if made.get("mask_probability") == 0:
                warnings.warn(f"{given} has learned no words, only paragraphs", stacklevel=2)
            # sentences of paragraphs are read without global tokens
            known = variant or made.get("variant", "")
            return _language_model(str(model_of_run(run)), given, known, **form)
        return _task_model(given, run, system)
    source = _checkpoint(given)
    chosen = variant or _variant_of_checkpoint(source)
    model = _language_model(source, given, chosen or "", max_length=max_length, window=window)
    if chosen is None and predicts(model.model):
        what = f"{given}: nothing says which variant of CDLM it is, so no blank is global when it is filled"
        warnings.warn(f"{what}; if it is one, give variant, such as 'cdlm'", stacklevel=2)
    return model


def _task_model(name: str, run: str, system: str) -> Model:
    kind = run_name(run)
    if kind not in TASK_RUNS:
        known = ", ".join(sorted({*LANGUAGE_RUNS, *TASK_RUNS}))
        raise ParameterError(f"{name} is a run of {kind!r}, which leaves no model; those that do: {known}")
    try:
        model = TASK_RUNS[kind][1](name, run, system)
    except ParameterError as error:
        raise ParameterError(str(error).replace(f"trained is {run!r}, which", name)) from None
    if isinstance(model, CoreferenceModel):
        return replace(model, open_finder=cache(mention_finder))
    return model


def _first_here(name: str | os.PathLike[str] | Sequence[str]) -> str | os.PathLike[str]:
    if isinstance(name, str | os.PathLike):
        return name
    return next(filter(_comes, name[:-1]), name[-1])


# Language models on the hub whose papers say how they were trained.
RELEASED = {
    "biu-nlp/cdlm": "cdlm",
    "allenai/longformer-base-4096": "longformer",
    "allenai/longformer-large-4096": "longformer",
}


def _variant_of_checkpoint(source: str) -> str | None:
    """The variant of a checkpoint that was released, ships with the project, or has a `made.json` of its
    pretraining beside its weights; None = nothing says it."""
    folder = Path(source)
    if not folder.is_dir():
        return RELEASED.get(source)
    try:
        made = json.loads((folder / MADE_FILE).read_text(encoding="utf-8"))
        if made["experiment"] == PRETRAINING and made["parameters"]["variant"] in VARIANTS:
            return made["parameters"]["variant"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    shipped = name_of_folder(folder.resolve()) or ""  # `storyworld/cdlm`
    return next((name for name in VARIANTS if shipped.endswith(f"/{name}")), None)


def mention_finder(name: str = "") -> Finder:
    """What finds mentions in plain texts for coreference: a tagger of notebook 07, "" = `MENTIONS`. Raises
    ParameterError if there is no such tagger."""
    if not name:
        return _shipped_finder()
    tagger = load(name)
    if not isinstance(tagger, TaggingModel):
        raise ParameterError(f"mentions is {name!r}, a {type(tagger).__name__}; name a tagger of notebook 07")
    return lambda text: [(one.start, one.end, one.label) for one in tagger.tag(text)]


def find_mentions(text: str) -> list[tuple[int, int, str]]:
    """The mentions in a text, (start, end, event or entity) in characters, by the tagger that comes with the
    project. Raises ParameterError if it is not here."""
    return list(mention_finder()(text))


@cache
def _shipped_finder() -> Finder:
    if not _comes(MENTIONS):
        remedy = "mark mentions with <m> and </m>, or give mentions, a function or a run of notebook 07"
        raise ParameterError(f"no mention is marked, and {MENTIONS}, which finds them, is not here; {remedy}")
    return mention_finder(MENTIONS)


def _comes(name: str) -> bool:
    return name in {*shipped_names(), *shipped_runs()} or Path(name).is_dir()


def kind_of_name(name: str) -> type[Any]:
    """The class of what `load` returns for a name, without loading. Raises CheckpointError: unknown name."""
    if (run := _run_of(name)) is None:
        _checkpoint(name)
        return LanguageModel
    return TASK_RUNS.get(run_name(run), (LanguageModel, None))[0]


def made_of(name: str) -> list[str]:
    """The folders or names of all models on which what `load` returns for a name may depend: those of its
    run, or of the run that this one opened, the encoder whose vectors they read, and what finds mentions."""
    if (run := _run_of(name)) is None:
        return [_checkpoint(name)]
    parameters = trained_parameters(run)
    opened = parameters.get("trained") or parameters.get("matching_run") or run
    finds = [MENTIONS] if run_name(run) == "coreference" and _comes(MENTIONS) else []
    folders = chain(*(trained_run(one).rglob(f"{MODEL_FOLDER}/{CONFIG_FILE}") for one in (opened, *finds)))
    reads = "model" if run_name(run) == TaggingRun.NAME else "sentence_encoder"
    frozen = trained_parameters(opened).get(reads) or parameters.get(reads)
    return [*(str(file.parent) for file in sorted(folders)), *filter(None, [frozen])]


def _run_of(name: str) -> str | None:
    """The run of that name, or that the model folder of that name is in, for `trained`; None if none."""
    if name in shipped_runs() and not Path(name).is_dir():
        return name
    path = Path(name)
    holders = (path, path.parent, path.parent.parent.parent) if path.name == MODEL_FOLDER else (path,)
    return next((str(folder) for folder in holders if (folder / RUN_FILE).is_file()), None)


def _checkpoint(name: str) -> str:
    """The checkpoint to load as a language model. Raises CheckpointError, listing known names: none fits."""
    known = ", ".join(sorted({*shipped_names(), *shipped_runs()})) or NONE_SHIPPED
    ships = f"with the project come {known}"
    path = Path(name)
    if name.strip() and path.is_dir():
        if not (path / CONFIG_FILE).is_file():
            raise CheckpointError(
                f"{name}: neither a run ({RUN_FILE}) nor a model ({CONFIG_FILE}) is in it; {ships}"
            )
        return name
    if folder_of_name(name) is not None:
        if name not in shipped_names():
            raise CheckpointError(f"{name}: no such model; {ships}")
        return str(checkpoint.shipped_folder(name))
    if name == "minilm":
        return name
    if path.is_absolute() or name.count("/") > 1 or name.startswith((".", "runs/")) or not name.strip():
        raise CheckpointError(f"{name.strip() or 'the empty name'}: there is no such folder; {ships}")
    try:
        read_config(name)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; {ships}") from None
    return name


def _language_model(
    source: str, name: str, variant: str, *, max_length: int | None, window: int | None
) -> LanguageModel:
    if variant:
        variant_of(variant)  # raises an error for an unknown one
    if source == "minilm":
        most, width = LONGEST, WINDOW
    else:
        config = read_config(source)
        if config.architectures and config.architectures[0] in TASK_CLASSES:
            raise CheckpointError(
                f"{name}: a {config.architectures[0]} without the run that it is of; give the run's folder, "
                f"which holds {RUN_FILE}"
            )
        most, width = longest(config), getattr(config, "attention_window", None)
        most, width = (most, width[0]) if width else (min(most, LONGEST), WINDOW)
    length = max_length or most
    form = {"max_length": length, "window": window or min(width, length - length % 2)}
    try:
        if source == "minilm":  # its language-model head would be untrained
            raise CheckpointError(source)
        model, tokenizer = load_language_model(source, **form)
    except CheckpointError:  # without a head it still encodes; any other fault is raised again below
        model, tokenizer = load_encoder(source, **form)
    if variant:
        reset_globals(model, variant)
    model = model.to(default_device())
    return LanguageModel(
        name=name,
        max_length=length,
        variant=variant,
        model=model,
        tokenizer=tokenizer,
        profile=TextProfile.load(source),
    )


LANGUAGE_RUNS = (PRETRAINING, "paragraph pretraining")
# Name of a run -> the class of what `load` returns for it, and its loader.
TASK_RUNS: dict[str, tuple[type[Any], Callable[[str, str, str], Model]]] = {
    "coreference": (CoreferenceModel, load_coreference),
    MatchingRun.NAME: (MatchingModel, load_matching),
    AlignmentRun.NAME: (MatchingModel, load_alignment),
    MultihopRun.NAME: (QuestionModel, load_questions),
    TaggingRun.NAME: (TaggingModel, load_tagging),
    AnswerRun.NAME: (AnswerModel, load_answers),
    VerificationRun.NAME: (ClaimModel, load_claims),
}
TASK_CLASSES = {
    *("PairScorer", "OneReadingScorer", "DynamicTagger", "StaticTagger", "QuestionAnswerer", "JointModel"),
    *("PooledPairs", "DocumentMatcher", "FineTunedMatcher", "PairClassifier"),
}
