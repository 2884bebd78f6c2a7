"""Inputs that several tests of widgets share: a malicious text, and a question, a ranking, a claim and a
sentence with predictions; and functions that read HTML."""

import re
from dataclasses import replace
from html import unescape

from cdlm_lab.data.records import Paragraph
from cdlm_lab.tasks.joint.answers_view import ReadRanking
from cdlm_lab.tasks.joint.claims_view import ReadClaim
from cdlm_lab.tasks.multihop.view import ReadQuestion
from cdlm_lab.tasks.tagging.view import ReadOccurrence, ReadSentence, ReadWord

HOSTILE = "<script>x</script>\"'&\u202e"
SHOWN = "&lt;script&gt;x&lt;/script&gt;&quot;&#x27;&amp;\u2039U+202E\u203a"

PARAGRAPHS = (
    Paragraph(title="Kiss and Tell", sentences=("A film with Shirley Temple.", " It is long.")),
    Paragraph(title="Judy", sentences=("A date.",)),
    Paragraph(
        title="Shirley Temple",
        sentences=("She was an actress.", " She was envoy to Ghana, later Chief of Protocol.", " She died."),
    ),
)
QUESTION = ReadQuestion(
    id="5a8c",
    question="Which post had the star of Kiss and Tell?",
    kind="bridge",
    gold_answer="Chief of Protocol",
    answer="envoy to Ghana",
    place=(2, "body", 28, 42),
    paragraphs=PARAGRAPHS,
    sentence_probabilities={(0, 0): 0.9, (0, 1): 0.0, (1, 0): 0.25, (2, 0): 0.6, (2, 1): 1.0},
    paragraph_probabilities=(0.98, 0.1, 0.5),
    supporting=frozenset({(0, 0), (2, 0)}),
    gold_supporting=frozenset({(0, 0), (2, 1)}),
    answer_f1=0.25,
    answer_em=False,
    support_em=True,
    support_f1=1.0,
)


def question(number, kind, *, answer, support):
    text = f"Question {number}?"
    return replace(QUESTION, id=f"q{number}", question=text, kind=kind, answer_em=answer, support_em=support)


def ranking(number, candidates, *, pairwise, joint, ae=-2.0, known=True):
    """Make a ranking whose second candidate is right and has the given scores; all others have 0."""
    others = (0.0,) * (candidates - 2)
    systems = {"pairwise": pairwise, "joint IE_k": joint, "joint AE_k": ae}
    return ReadRanking(
        id=f"q{number}",
        question=f"Question {number}?",
        candidates=tuple(f"candidate {place}" for place in range(candidates)),
        right=tuple(place == 1 for place in range(candidates)) if known else None,
        scores={name: (0.0, score, *others) for name, score in systems.items()},
    )


def claim(number, predicted, gold):
    probabilities = dict.fromkeys(("supported", "refuted", "not enough info"), 0.2) | {predicted: 0.6}
    more = {"evidence": ("A.",), "probabilities": probabilities, "shares": (0.5,), "gold": gold}
    return ReadClaim(id=f"c{number}", claim=f"Claim {number}.", **more)


def word(text, gold, predicted, weights=(0.25, 0.75)):
    """Make a word with one occurrence for each weight, in sentences 100, 101, ..."""
    occurrences = tuple(
        ReadOccurrence(words=(text, "there"), place=0, distance=9, weight=weight, sentence=100 + number)
        for number, weight in enumerate(weights)
    )
    return ReadWord(word=text, gold=gold, predicted=predicted, occurrences=occurrences)


def sentence(number, *words, document="novel"):
    return ReadSentence(document=document, number=number, words=words)


def plain(html):
    """Return the text of HTML with its spaces unchanged."""
    return unescape(re.sub(r"<[^>]*>", "", html))


def words_of(html):
    """Return the text of HTML without styles, on one line."""
    bare = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", bare)).split())


def tags_of(html):
    """Return the names of all elements of HTML."""
    return set(re.findall(r"<([a-z0-9]+)", re.sub(r"<style>.*?</style>", "<style>", html, flags=re.DOTALL)))


def cells_of(html, read=plain):
    """Return the cells, as text, of each row in the bodies of all tables."""
    rows = re.findall(r"<tr.*?</tr>", "".join(re.findall(r"<tbody>.*?</tbody>", html)))
    return [[read(cell) for cell in re.findall(r"<td.*?</td>", row)] for row in rows]


def legend_of(html, read=plain):
    return read(re.search(r'<div class="cdlm-legend".*?</div>', html)[0])


def bars_of(html):
    """Return how full each bar is, in per cent."""
    return [int(width) for width in re.findall(r"width:(\d+)%;background:#3b8ed0", html)]


def grounds_of(html):
    """Return the opacities of the blue backgrounds, 0 to 255."""
    return [int(depth, 16) for depth in re.findall(r"background:#3b8ed0([0-9a-f]{2})", html)]
