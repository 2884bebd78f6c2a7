"""The topics of a coreference corpus: storyworld, the JSON of the released code, ECB+, or CoNLL files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.convert import coreference_files
from cdlm_lab.data.convert.ecb_plus import read_ecb_plus
from cdlm_lab.data.coreference import without_repeats
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import KINDS, Kind, PassedOver, Topic
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.parameters import ParameterError

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
