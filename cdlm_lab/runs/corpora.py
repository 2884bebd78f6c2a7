"""Cluster corpora of notebooks 00 to 03 and 11, and the five model variants that read them.

The language models of CDLM's ablation (section 3, "Baseline LMs"), and how they differ:

| variant | documents of a training example | tokens with global attention |
|---|---|---|
| longformer | unrelated: the base that all others start from, never shown a cluster | none |
| local-cdlm | of one cluster | none |
| rand-cdlm | of different clusters | the masked ones |
| prefix-cdlm | of one cluster | the first 15% |
| cdlm | of one cluster | the masked ones |

In the paper `longformer` is the published checkpoint; here, models without a trained language-model head
(`tiny`, `minilm`) are first trained into it, as Longformer was. Perplexity of each variant is measured with
the global tokens it was trained with, on documents of one cluster (section 3.1). `reset_globals` does what
the paper says of tasks with global tokens (Tables 3 to 6): "the global attention weights used by the
underlying Longformer and by Local CDLM are initialized to the values of their pretrained local attention
weights" (section 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from datasets import Dataset
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.convert import coreference_files
from cdlm_lab.data.clusters import corpus_checksum, open_corpus, passed_over
from cdlm_lab.data.convert.ecb_plus import read_ecb_plus
from cdlm_lab.data.files import DataError, named
from cdlm_lab.data.records import KINDS, Kind, PassedOver, Topic
from cdlm_lab.data.coreference import without_repeats
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.errors import check_choice
from cdlm_lab.examples.cached_corpus import (
    CorpusCounts,
    cache_folder,
    corpus_fingerprint,
    read_counts,
    tokenise_clusters,
)
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.masking import continuing_pieces, word_pieces
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.encoders.encoder import copy_local_to_global
from cdlm_lab.parameters import ParameterError, parameters_of, settings
from cdlm_lab.progress import usable_cores
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import Workers
from cdlm_lab.training.trained import SYSTEMS_FOLDER


class Variant(NamedTuple):
    """How one of the five models is trained and evaluated. `documents` of a training example: `related` or
    `random`; `global_policy`, in training and evaluation alike: `masked`, `prefix` or `none`."""

    name: str
    documents: str
    global_policy: str


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("longformer", "random", "none"),
        Variant("local-cdlm", "related", "none"),
        Variant("rand-cdlm", "random", "masked"),
        Variant("prefix-cdlm", "related", "prefix"),
        Variant("cdlm", "related", "masked"),
    )
}


@settings
class Checkpoints:
    """The checkpoint of each variant: a folder, a hub name, or one that ships with the project; "" leaves the
    variant out."""

    longformer: str = "storyworld/longformer"
    local_cdlm: str = "storyworld/local-cdlm"
    rand_cdlm: str = "storyworld/rand-cdlm"
    prefix_cdlm: str = "storyworld/prefix-cdlm"
    cdlm: str = "storyworld/cdlm"

    def __post_init__(self) -> None:
        if not self.checkpoints:
            raise ParameterError("every model is left out; name at least one")

    @property
    def checkpoints(self) -> dict[str, str]:
        """Variant -> checkpoint, in the paper's order, without those that are left out."""
        named = {variant: getattr(self, variant.replace("-", "_")) for variant in VARIANTS}
        return {variant: where for variant, where in named.items() if where}


def variant_of(name: str) -> Variant:
    """The variant of that name. Raises ValueError, listing all names, for an unknown one."""
    check_choice("variant", name, VARIANTS)
    return VARIANTS[name]


def reset_globals(model: nn.Module, name: str) -> None:
    """Copy the local projections of a variant that was trained without global tokens over its global ones, in
    place; other variants are left unchanged."""
    if variant_of(name).global_policy == "none":
        copy_local_to_global(model)


def checkpoint_of(encoders: str, name: str) -> str:
    """The encoder checkpoint of a variant. For `storyworld`, the one that ships with the project; otherwise
    the first that exists of `<encoders>/<name>/model`, `<encoders>/<name>`, the model with seed 0 of a run
    that trained the variant, `encoders` itself, and `<encoders>-<name>/model`, or with `_`, as in the runs of
    a grid. Raises ParameterError if there is none."""
    if encoders == "storyworld":
        return f"storyworld/{name}"
    given = Path(encoders)
    run = given / SYSTEMS_FOLDER / f"{name}-0" / MODEL_FOLDER
    runs = [Path(f"{encoders}{mark}{name}", MODEL_FOLDER) for mark in "-_"]
    for folder in (given / name / MODEL_FOLDER, given / name, run, given, *runs):
        if (folder / "config.json").is_file():
            return str(folder)
    raise ParameterError(
        f"encoders is {encoders!r}, where {name} is not; write storyworld, or a folder with a folder {name}"
    )


CACHE_FOLDER = ""  # of tokenised corpora: the one of the user, see `cache_folder`
Split = Literal["train", "validation", "test"]
Masking = Literal["tokens", "whole_words"]
Packing = Literal["whole_documents", "equal_share", "truncate_last"]
# Masks are drawn from the seed and a number per split, so that no two splits share random numbers.
SPLIT_SEEDS: dict[str, int] = {"train": 1, "validation": 2, "test": 3}


@settings
class CorpusSettings:
    """Which clusters are read, and how they become sequences.

    `train_clusters`, `held_out_clusters`: at most so many; 0 = all (storyworld is generated without end, so
    it needs a number). `minimum_documents`: smaller clusters are dropped. `mask_probability`: of each text
    token, or each word. `masking`: of training examples; held-out examples always mask single tokens, so that
    perplexities are comparable. `seed`: of the order of documents and the masks.
    """

    corpus: str = "storyworld"
    train_clusters: int = 1600
    held_out_clusters: int = 60
    minimum_documents: int = 3
    packing: Packing = "equal_share"
    max_length: int = 512
    mask_probability: float = 0.15
    masking: Masking = "tokens"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("train_clusters", "held_out_clusters"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name} is {getattr(self, name)}; write 0 for all, or how many at most")
            if self.corpus == "storyworld" and not getattr(self, name):
                raise ParameterError(
                    f"{name} is 0, but storyworld has no end; write how many clusters to use"
                )

    def size(self, split: str) -> int:
        """The number of clusters read from a split; 0 = all."""
        return self.train_clusters if split == "train" else self.held_out_clusters


class TokenisedSplit(NamedTuple):
    """One tokenised split of a corpus: the clusters, counts of what was kept and dropped, the checksum of the
    source, and the files that were skipped."""

    clusters: Dataset
    counts: CorpusCounts
    checksum: str
    passed_over: Sequence[str] = ()


def tokenised_split(
    settings: CorpusSettings,
    split: Split,
    *,
    tokenizer: PreTrainedTokenizerBase,
    cache: str | Path = CACHE_FOLDER,
    workers: Workers = "auto",
) -> TokenisedSplit:
    """Tokenise a split with so many processes (`workers`), or open it from the folder `cache`."""
    size, minimum = settings.size(split), settings.minimum_documents
    source = {"split": split, "size": size, "seed": 0}
    checksum = corpus_checksum(settings.corpus, **source)
    fingerprint = corpus_fingerprint(f"{checksum}/{split}/{size}", tokenizer, minimum_documents=minimum)
    clusters = tokenise_clusters(
        lambda: open_corpus(settings.corpus, **source),
        tokenizer,
        cache_dir=cache_folder(cache),
        fingerprint=fingerprint,
        minimum_documents=minimum,
        expected=size,
        processes=tokenising_processes(workers),
    )
    counts = read_counts(cache_folder(cache), fingerprint=fingerprint)
    return TokenisedSplit(clusters, counts, checksum, passed_over(settings.corpus))


def print_passed_over(corpus: str, files: Sequence[str]) -> None:
    """Print the files of a corpus that were skipped, if any; call it once for all splits."""
    if files:
        print(f"{corpus}: files passed over: {named(files)}", flush=True)


def tokenising_processes(workers: Workers) -> int:
    """The number of tokenising processes: `auto` = one per core; 0 = this process."""
    return usable_cores() if workers == "auto" else max(1, workers)


def examples_of(
    split: TokenisedSplit,
    name: Split,
    settings: CorpusSettings,
    *,
    variant: Variant,
    tokenizer: PreTrainedTokenizerBase,
    size: int | None = None,
) -> CrossDocumentExamples:
    """The examples of split `name` as a variant reads them. Train: `size` examples in training order, with
    documents of the variant's kind. Held out: one example per cluster, always of related documents, with
    fixed masks that are the same for every variant; where facts are not marked (all corpora but storyworld),
    a word is marked that another document has too and its own has once, if the tokenizer shows words.

    Raises ValueError for whole-word masking with a tokenizer that does not show words.
    """
    choices: dict[str, Any] = {"documents": "related", "shuffle": False}
    if settings.corpus != "storyworld":
        with suppress(ValueError):  # a tokenizer that does not show words
            choices["words"] = word_pieces(tokenizer)
    if name == "train":
        whole_words = settings.masking == "whole_words"
        continues = continuing_pieces(tokenizer) if whole_words else None
        choices = {"documents": variant.documents, "size": size, "continues": continues}
    return CrossDocumentExamples(
        corpus=split.clusters,
        special=from_tokenizer(tokenizer),
        global_policy=variant.global_policy,
        seed=settings.seed * len(SPLIT_SEEDS) + SPLIT_SEEDS[name],
        **parameters_of(settings, "max_length", "packing", "mask_probability"),
        **choices,
    )


# ---- topics with coreference ----

CoreferenceSplit = Literal["train", "dev", "test"]


def read_coreference_split(
    corpus: str,
    split: CoreferenceSplit,
    *,
    stories: int,
    kind: Kind,
    chosen: Mapping[str, Sequence[str]],
    passed_over: PassedOver,
    chains: coreference_files.Chains = "auto",
) -> list[Topic]:
    """The topics of one split.

    Args:
        chosen: names of the topics of `dev` and `test` to use, [] = all. CoNLL files that are of no split
            (or all of one) are split by these names: the other topics are train.
        passed_over: counts the items that cannot be used.
        chains: of CoNLL files, within what equal names mean one chain; other corpora take only "auto".
    """
    folder = Path(corpus)
    has_json = any((folder / f"{name}.json").exists() for name in get_args(CoreferenceSplit))
    if corpus != "storyworld" and not has_json and not _is_ecb_plus(folder):
        files = coreference_files.find_conll(folder, kind)
        if len(files) == 1:
            _count_hidden(folder, kind, passed_over)
            (only,) = files.values()
            form = {"kind": kind, "name": "all", "passed_over": passed_over, "chains": chains}
            topics = without_repeats(coreference_files.read_conll_corpus(only, **form), passed_over)
            return _divided(corpus, topics, chosen, split)
    form = {"stories": stories, "kind": kind, "passed_over": passed_over, "chains": chains}
    topics = read_corpus(corpus, split, **form)
    wanted = chosen.get(split)
    if not wanted:
        return topics
    _check_names(f"{split}_topics", wanted, topics)
    return [topic for topic in topics if topic.id in wanted]


def read_corpus(
    corpus: str,
    split: CoreferenceSplit,
    *,
    stories: int,
    kind: Kind | None = None,
    passed_over: PassedOver | None = None,
    chains: coreference_files.Chains = "auto",
) -> list[Topic]:
    """All topics of a split of storyworld (`stories` of them), of a folder with the released JSON, of ECB+,
    or of CoNLL files, which hold one kind of mentions. `kind`: None = both; `passed_over`: counts what cannot
    be used, None = it is not counted; `chains`: of CoNLL files, within what equal names mean one chain."""
    folder = Path(corpus)
    counted = PassedOver() if passed_over is None else passed_over
    is_conll = not (corpus == "storyworld" or (folder / f"{split}.json").exists() or _is_ecb_plus(folder))
    if chains != "auto" and not (is_conll and kind):
        raise ParameterError(f"chains is {chains!r}, but {corpus} names its chains itself; write 'auto'")
    if corpus == "storyworld":
        return list(read_storyworld_topics(split, stories))
    if (folder / f"{split}.json").exists():
        if kind and not coreference_files.mention_file(folder, split, kind).is_file():
            other = KINDS[1 - KINDS.index(kind)]
            raise ParameterError(
                f"{corpus} has no file of {kind} mentions for {split}; set kind to {other!r}"
            )
        kinds = (kind,) if kind else KINDS
        topics = coreference_files.read_coreference_json(folder, split, kinds=kinds, passed_over=passed_over)
    elif kind is None or _is_ecb_plus(folder):
        topics = read_ecb_plus(corpus, split)
    else:
        files = coreference_files.find_conll(corpus, kind)
        if split not in files:
            raise _no_split(folder, split, files)
        for file in files.get("", []):
            counted.add("CoNLL file whose name says no split", str(file))
        _count_hidden(folder, kind, counted, split)
        form = {"kind": kind, "name": split, "passed_over": counted, "chains": chains}
        topics = coreference_files.read_conll_corpus(files[split], **form)
    return without_repeats(topics, counted)


def _count_hidden(folder: Path, kind: Kind, passed_over: PassedOver, split: str = "") -> None:
    """Count the CoNLL files of a split ("" = of any) that are not read, as they are hidden."""
    for own_split, files in coreference_files.find_conll(folder, kind, hidden=True).items():
        for file in files if "" in (split, own_split) or split == own_split else ():
            passed_over.add("hidden CoNLL file, such as an editor's copy", str(file))


def _is_ecb_plus(folder: Path) -> bool:
    return any((folder / name).is_dir() for name in ("ECB+", "ECB+_LREC2014/ECB+"))


def _no_split(folder: Path, split: str, files: Mapping[str, Sequence[Path]]) -> DataError:
    if not folder.exists():
        what = "there is no such file or folder"
        return DataError(folder, what, "check the spelling of the path", field="corpus")
    if not files:
        what = f"neither ECB+, nor {split}.json of the released code, nor CoNLL files (*.conll, *_conll)"
        return DataError(folder, what, "give a folder that holds one of them, or storyworld", field="folder")
    others = ", ".join(f"{name or 'no split'} ({len(paths)})" for name, paths in files.items())
    what = f"no CoNLL files of {split}, only of {others}"
    return DataError(folder, what, f"call one {split}.conll, or put it in a folder {split}", field="folder")


def _divided(
    corpus: str, topics: Sequence[Topic], chosen: Mapping[str, Sequence[str]], split: str
) -> list[Topic]:
    """The topics of a split, for a corpus that is not split into files."""
    if len(topics) < len(get_args(CoreferenceSplit)):
        raise ParameterError(
            f"{corpus} is not split and has {len(topics)} topics, but train, dev and test take one each; to "
            "test on it alone, call it test.conll and put train.conll and dev.conll of another one beside it"
        )
    for name, wanted in chosen.items():
        if not wanted:
            raise ParameterError(
                f"{corpus} is not split into train, dev and test: name some of its {len(topics)} topics as "
                f"{name}_topics, separated by spaces ({_some(topics)})"
            )
        _check_names(f"{name}_topics", wanted, topics)
    if both := set(chosen["dev"]) & set(chosen["test"]):
        raise ParameterError(f"{min(both)} is in dev_topics and in test_topics; leave it in one of them")
    held_out = {*chosen["dev"], *chosen["test"]}
    if held_out >= {topic.id for topic in topics}:
        raise ParameterError(
            f"dev_topics and test_topics take all topics of {corpus}; leave some to learn from"
        )
    if split in chosen:
        return [topic for topic in topics if topic.id in chosen[split]]
    return [topic for topic in topics if topic.id not in held_out]


def _check_names(parameter: str, wanted: Sequence[str], topics: Sequence[Topic]) -> None:
    known = {topic.id for topic in topics}
    if missing := [name for name in wanted if name not in known]:
        raise ParameterError(f"{parameter} names {missing[0]}, but the topics are {_some(topics)}")


def _some(topics: Sequence[Topic], most: int = 50) -> str:
    return ", ".join(topic.id for topic in topics[:most]) + (", ..." if len(topics) > most else "")
