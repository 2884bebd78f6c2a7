"""Questions of notebook 09: storyworld or files, which of them are used, what of two corpora is tested."""

from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.data.candidates import checksum_of
from cdlm_lab.data.files import DataError
from cdlm_lab.experiments.answer_selection import AnswerCorpus, cluster_of, read_answers
from cdlm_lab.parameters import ParameterError

HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"
# Of each question the labels of its candidates.
CLEAN, NONE, ALL = "01", "00", "11"
WIKIQA = {
    "train": (CLEAN, NONE, CLEAN, ALL, "100"),
    "dev": (CLEAN, NONE, CLEAN),
    "test": (CLEAN, CLEAN, ALL, "010"),
}


def write_wikiqa(folder: Path, questions: dict[str, tuple[str, ...]] = WIKIQA) -> Path:
    folder.mkdir(exist_ok=True)
    for split, of_split in questions.items():
        rows = [
            f"Q{number}\tWhat of {split} {number}?\tD{number}\tTitle\tD{number}-{at}\tSentence {at}.\t{label}"
            for number, labels in enumerate(of_split)
            for at, label in enumerate(labels)
        ]
        (folder / f"WikiQA-{split}.tsv").write_text("\n".join([HEADER, *rows]) + "\n")
    return folder


def write_asnq(folder: Path) -> Path:
    folder.mkdir()
    for split in ("train", "dev", "test"):
        rows = [f"who is {at}\tIt is {n}.\t{4 if n == at else 1}" for at in range(2) for n in range(3)]
        (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    return folder


def ids(splits, split: str) -> list[str]:
    return [one.id for one in splits[split].sets]


def test_dev_and_test_are_clean_and_train_as_asked(tmp_path: Path):
    folder = str(write_wikiqa(tmp_path))
    clean = read_answers(AnswerCorpus(corpus=folder))
    every = read_answers(AnswerCorpus(corpus=folder, train_on="all"))
    assert ids(clean, "train") == ["Q0", "Q2", "Q4"]
    assert ids(every, "train") == ["Q0", "Q1", "Q2", "Q3", "Q4"]
    for splits in (clean, every):
        assert ids(splits, "dev") == ["Q0", "Q2"]
        assert ids(splits, "test") == ["Q0", "Q1", "Q3"]
    read = clean["train"].read
    assert (read.questions, read.candidates, read.without_right, read.without_wrong) == (5, 11, 1, 1)
    assert {one.corpus for one in clean.values()} == {"wikiqa"}
    assert clean["dev"].checksum == checksum_of(folder, "dev")


def test_the_test_questions_of_another_corpus(tmp_path: Path):
    wikiqa, asnq = str(write_wikiqa(tmp_path / "w")), str(write_asnq(tmp_path / "a"))
    own = read_answers(AnswerCorpus(corpus=wikiqa))
    found = read_answers(AnswerCorpus(corpus=wikiqa, test_corpus=asnq))
    assert (found["train"], found["dev"]) == (own["train"], own["dev"])
    assert [one.question for one in found["test"].sets] == ["who is 0", "who is 1"]
    assert (found["test"].corpus, found["dev"].corpus) == ("asnq", "wikiqa")
    assert found["test"].checksum == checksum_of(asnq, "test")
    from_stories = read_answers(AnswerCorpus(train_stories=2, held_out_stories=2, test_corpus=asnq))
    assert {split: one.corpus for split, one in from_stories.items()} == {
        "train": "storyworld",
        "dev": "storyworld",
        "test": "asnq",
    }
    with pytest.raises(DataError, match="there is no such folder"):
        read_answers(AnswerCorpus(corpus=wikiqa, test_corpus=str(tmp_path / "gone")))


def test_some_questions_are_drawn_the_same_ones_each_time(tmp_path: Path):
    folder = str(write_wikiqa(tmp_path))
    drawn = read_answers(AnswerCorpus(corpus=folder, train_on="all", train_questions=3))
    assert len(ids(drawn, "train")) == 3
    assert ids(drawn, "train") == sorted(ids(drawn, "train")), "in their order"
    assert drawn == read_answers(AnswerCorpus(corpus=folder, train_on="all", train_questions=3))
    assert ids(drawn, "test") == ["Q0", "Q1", "Q3"]
    all_of_them = read_answers(AnswerCorpus(corpus=folder, train_questions=99))
    assert ids(all_of_them, "train") == ["Q0", "Q2", "Q4"]


def test_storyworld_and_its_stories():
    found = read_answers(AnswerCorpus(train_stories=3, held_out_stories=2))
    assert len({cluster_of(one) for one in found["train"].sets}) == 3
    assert len({cluster_of(one) for one in found["dev"].sets}) == 2
    assert len(found["dev"].sets) > 2
    assert cluster_of(replace(found["dev"].sets[0], id="Q-c2")) == "Q-c2", "of files each is its own"
    assert found["test"].corpus == "storyworld"
    assert not found["test"].checksum


def test_a_split_that_cannot_be_used(tmp_path: Path):
    folder = str(write_wikiqa(tmp_path, WIKIQA | {"dev": (NONE, CLEAN, ALL)}))
    with pytest.raises(ParameterError, match="1 of the 3 questions of dev can be used"):
        read_answers(AnswerCorpus(corpus=folder))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train_on": "some"}, "train_on is 'some'; choose one of clean, all"),
        ({"held_out_stories": 1}, "held_out_stories is 1; it must be at least 2"),
        ({"train_questions": -1}, "train_questions is -1; it must be at least 0"),
    ],
)
def test_values_that_cannot_be(given: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        AnswerCorpus(**given)
