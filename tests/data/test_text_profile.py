"""A model's profile of its texts: no false alarm on its own world, no silence on another."""

import gzip
import json
import lzma
import os
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.apply.shipped_profiles import INPUTS, WORLD, shipped_profile
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.text_profile import PROFILE_FILE, TextProfile, foreign_to_a_model, texts_of_record
from cdlm_lab.encoders.model_folder import FOLDER

# A shipped model of each kind of run, by its folder.
MODELS = {
    "pretraining": "cdlm",
    "paragraph pretraining": "paragraphs/model",
    "coreference": "coreference/model",
    "document matching": "matching/systems/cdlm-0/model",
    "multihop question answering": "questions/systems/local-cdlm-0/model",
    "document-attentive tagging": "tagging/systems/doc-arc-10-0/model",
    "answer selection": "answers/systems/joint-ie-0/model",
    "fact verification": "claims/systems/joint-ie-0/model",
}
WHO = ["The senator from Ohio", "My neighbour's daughter", "A chemist at Stanford", "The British embassy"]
DID = ["rejected", "photographed", "has been quietly selling", "would never apologise for", "reviewed"]
WHAT = [
    "the tax bill",
    "her grandfather's violin",
    "a new vaccine",
    "twelve kilos of cheese",
    "the peace treaty",
]
THEN = [
    "Nobody in Washington seemed surprised.",
    "Stocks fell sharply in early trading.",
    "Critics praised its humour, though not its length.",
    "The BBC broadcast the interview on Sunday.",
    "It rained all weekend, so the children baked bread.",
]
ENGLISH = [f"{who} {did} {what}. {then}" for who, did, what, then in product(WHO, DID, WHAT, THEN)]
GERMAN = (
    "Am Dienstag kamen bei einer Explosion in einem Bergwerk mehrere Menschen ums Leben, wie die Polizei am "
    "Abend in der Landeshauptstadt mitteilte. Rettungskr\u00e4fte suchten die ganze Nacht nach Vermissten. "
    "Der Betreiber will die Angeh\u00f6rigen am Mittwoch unterrichten. Viele warteten noch vor dem Werkstor."
)
ONE_SENTENCE = [
    "A fire destroyed the cathedral in Paris on Monday evening.",
    "Angela Merkel won the election in 2005.",
    "Barack Obama was born in Hawaii.",
    "Two people died in the crash.",
    "Jeff Weiner was the head of LinkedIn, and Satya Nadella heads Microsoft.",
    "Die Kanzlerin gewann die Wahl im Jahr 2005.",
    "\u0627\u0646\u0641\u062c\u0627\u0631 \u0641\u064a \u0627\u0644\u0645\u0646\u062c\u0645",  # Arabic
    "\u4e2d\u56fd\u603b\u7406\u8bbf\u95ee\u67cf\u6797",  # Chinese
    "\U0001f525\U0001f525 fire \U0001f4a5",
]


def profile_of(kind: str) -> TextProfile:
    profile = TextProfile.load(FOLDER / MODELS[kind])
    assert profile is not None
    return profile


def test_every_shipped_model_has_a_profile() -> None:
    folders = [file.parent for file in FOLDER.rglob("model.safetensors")]
    assert len(folders) > 12
    assert [folder for folder in folders if TextProfile.load(folder) is None] == []


QUICK = ("pretraining", "fact verification")
KINDS = [pytest.param(kind, marks=[] if kind in QUICK else pytest.mark.slow) for kind in MODELS]


@pytest.mark.parametrize("kind", KINDS)
def test_no_alarm_on_500_texts_of_its_own_world(kind: str) -> None:
    """Stories of the test split, which no profile has seen, as the task of the model reads them."""
    profile, some = profile_of(kind), 500
    topics = 3 if kind == "coreference" else 1  # a topic has three stories
    inputs = list(islice(map(texts_of_record, INPUTS[kind]("test", topics * some)), some))
    assert len(inputs) == some
    assert [texts for texts in inputs if profile.foreign(texts)] == []


@pytest.mark.parametrize("kind", MODELS)
def test_no_silence_on_500_texts_of_another_world(kind: str) -> None:
    profile = profile_of(kind)
    assert len(set(ENGLISH)) == 500
    assert [text for text in ENGLISH if not profile.foreign([text])] == []


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("text", ONE_SENTENCE)
def test_a_single_sentence_is_enough(kind: str, text: str) -> None:
    assert (
        profile_of(kind).foreign([text]).startswith(f"foreign text: the model was trained on {WORLD}, and ")
    )


@pytest.mark.parametrize("kind", MODELS)
def test_no_single_sentence_of_its_world_is_foreign(kind: str) -> None:
    profile = profile_of(kind)
    documents = [
        one for story in stories(split="test", start=100, stop=106) for one in story.cluster.documents
    ]
    sentences = [document.text[slice(*one)] for document in documents for one in document.sentences]
    assert len(sentences) > 200
    assert [one for one in sentences if profile.foreign([one])] == []


def test_one_foreign_word_in_a_text_of_its_world_is_no_alarm() -> None:
    profile = profile_of("pretraining")
    for story in stories(split="test", start=500, stop=520):
        text = story.cluster.documents[0].text
        assert not profile.foreign([f"{text} \U0001f525"])
        assert not profile.foreign([text.replace("'", "\u2019").replace(" - ", " \u2014 ")])
        first = text.split("\n")[1].split(". ")[0]
        assert not profile.foreign([f"{first.replace(first.split()[1], '[MASK]', 1)}."])
        assert not profile.foreign([f"<m>{first}</m>."])


@pytest.mark.slow
def test_a_shipped_profile_is_what_the_function_makes() -> None:
    made, saved = shipped_profile("document-attentive tagging"), profile_of("document-attentive tagging")
    assert made is not None
    assert (made.limits, made.known.tobytes()) == (saved.limits, saved.known.tobytes())


def test_a_natural_language_is_not_foreign_to_itself() -> None:
    """Every text has pairs of words and names that no other has, so that nothing is said about them."""
    of_two = [[f"{who} {did} {what}."] for who, did, what in product(WHO, DID, WHAT)]
    profile = TextProfile.of(of_two[:60], of_two[60:], trained_on="a hundred sentences")
    assert profile is not None
    assert not any(profile.foreign(texts) for texts in of_two[60:])


def texts_of_a_language(count: int, *, seed: int) -> list[list[str]]:
    """Texts of 100 words that are as rare as a natural language's, in an order that no other text has."""
    draw = np.random.default_rng(seed)
    syllables = [f"{a}{b}" for a, b in product("bdfglmnprst", "aeiou")]
    words = ["".join(one) for one in product(syllables, syllables, syllables[:9])]
    shares = 1 / np.arange(1, len(words) + 1)
    drawn = draw.choice(words, size=(count, 100), p=shares / shares.sum())
    return [[f"{' '.join(text).capitalize()}."] for text in drawn]


def test_no_alarm_on_500_texts_of_a_language_but_on_another() -> None:
    """As the models of real English: measured on 500 held-out articles and passages each."""
    held_out = texts_of_a_language(100, seed=1)
    profile = TextProfile.of(texts_of_a_language(1_000, seed=0), held_out, trained_on="a language")
    assert profile is not None
    assert [texts for texts in texts_of_a_language(500, seed=2) if profile.foreign(texts)] == []
    assert profile.foreign([GERMAN]).startswith("foreign text: the model was trained on a language, and ")


def test_saved_and_loaded_it_says_the_same(tmp_path: Path) -> None:
    texts = [["A fire broke out in the mill."]] * 30
    profile = TextProfile.of(texts, texts, trained_on="mills & <fires>")
    assert profile is not None
    profile.save(tmp_path)
    again = TextProfile.load(tmp_path)
    assert again is not None
    assert (again.trained_on, again.limits) == (profile.trained_on, profile.limits)
    for text in ("A fire broke out in the mill.", "Er ging nach Hause und schlief ein."):
        assert again.counts([text]) == profile.counts([text])
        assert foreign_to_a_model([tmp_path / "none", tmp_path], [text]) == profile.foreign([text])
    assert profile.counts(["A fire broke out in the mill."]) == {
        "phrases": (0, 9),
        "spellings": (0, 0),
        "words": (0, 7),
    }
    assert profile.foreign(["Er ging nach Hause und schlief ein."])


def test_no_profile_no_alarm_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert TextProfile.load(tmp_path) is None
    assert foreign_to_a_model([tmp_path], ["Hello there."]) == ""
    assert TextProfile.of([], [["a"]], trained_on="x") is None
    assert TextProfile.of([["a"]], [], trained_on="x") is None
    (tmp_path / PROFILE_FILE).write_text('{"trained_on": "x", "limits": {}, "known": 3}')
    with pytest.raises(
        DataError, match=r"text_profile.json:1: .*no profile of texts.*; copy it again, or del"
    ):
        TextProfile.load(tmp_path)


def test_blanks_and_questions_are_texts() -> None:
    question = MultihopQuestion(
        id="a", text="Who?", paragraphs=(Paragraph(title="T", sentences=("A. ", "B.")),)
    )
    assert texts_of_record(question) == ["Who?", "T", "A. B."]
    with pytest.raises(TypeError, match="str is no record with texts"):
        texts_of_record("a")  # type: ignore[arg-type]


# ---- real texts, where they are present ----

DATA = Path(os.environ.get("CDLM_LAB_DATA", "shared/data"))
SOME = 500


def _articles() -> list[list[str]]:
    with lzma.open(DATA / "news_articles/articles.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [[json.loads(line)["text"]] for line in islice(lines, SOME)]


def _claims() -> list[list[str]]:
    with gzip.open(DATA / "fever_related/fm2_test.jsonl.gz", "rt", encoding="utf-8") as lines:
        read = map(json.loads, islice(lines, SOME))
        return [[one["text"], *(each["text"] for each in one["gold_evidence"])] for one in read]


def _paragraphs() -> list[list[str]]:
    with gzip.open(DATA / "hotpotqa/dev.json.gz", "rt", encoding="utf-8") as file:
        contexts = [one["context"] for one in json.load(file)]
    titled = (each for context in contexts for each in context)
    return [[title, "".join(sentences)] for title, sentences in islice(titled, SOME)]


REAL = {"articles": _articles, "claims with evidence": _claims, "paragraphs": _paragraphs}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_english_is_foreign_to_storyworld_and_not_to_real_english(name: str) -> None:
    if not DATA.is_dir():
        pytest.skip("until the published data sets are in shared/data, or in the folder CDLM_LAB_DATA")
    inputs = REAL[name]()
    assert len(inputs) == SOME
    for kind in MODELS:
        assert [texts for texts in inputs if not profile_of(kind).foreign(texts)] == []
    news = _articles()
    of_news = TextProfile.of(news[:400], news[400:], trained_on="news")
    assert of_news is not None
    assert sum(bool(of_news.foreign(texts)) for texts in inputs) <= 1
    assert of_news.foreign([GERMAN])
