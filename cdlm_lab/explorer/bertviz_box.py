"""What is chosen in the explorer in bertviz: the attention between two sentences, and the box to draw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from ipywidgets import Dropdown

from cdlm_lab.encoders.source_attention import attention_between
from cdlm_lab.examples.tokens import token_texts
from cdlm_lab.explorer.reading import Place, Reader, Selection, panel_of
from cdlm_lab.explorer.widget.bertviz import bertviz_html
from cdlm_lab.views.ask import AskBox
from cdlm_lab.views.html import MUTED, div, escaped

VIEWS = {"all heads, one layer at a time": "head", "every layer and head": "model"}
DIRECTIONS = {"from the chosen words": "from", "to the chosen words": "to"}
MOST_TOKENS = {"head": 32, "model": 24}  # most tokens of each sentence, in bertviz's two views


def sentences_in_bertviz(reader: Reader, selection: Selection, *, view: str, direction: str) -> str:
    """bertviz's view of two sentences as HTML: that of the source, and that of the target (if none is chosen,
    of the strongest word of another document), with the global attention chosen in the explorer.

    Only attention between the two is shown; within a sentence there is far more, which would hide it.

    Args:
        view: `head` or `model`.
        direction: `from` = from the source's sentence to the other; `to` = from the other to it.
    """
    if selection.source is None:
        raise ValueError("choose words in the explorer first: click a word or drag over several")
    places = (selection.source, selection.target or _strongest(reader, selection))
    queries, keys = (_around(reader, place, MOST_TOKENS[view]) for place in places)
    if direction == "to":
        queries, keys = keys, queries
    ids = reader.sequence.input_ids
    form = {"queries": queries, "keys": keys, "global_mask": reader.is_global(selection)}
    weights = attention_between(reader.model, ids, **form)
    if not weights.any():
        raise ValueError(
            "nothing passes between these sentences: they are too far apart and neither is global; switch on "
            "the global attention of the chosen words"
        )
    left, right = (_texts(reader, positions) for positions in (queries, keys))
    return bertviz_html(weights, query_tokens=left, key_tokens=right, view=view)


def _strongest(reader: Reader, selection: Selection) -> Place:
    """The word of another document with the highest score. Raises ValueError without another one."""
    allowed = reader.ranked & (reader.document_of_word != selection.source[0])
    if not allowed.any():
        raise ValueError("there is no other document; show two or more")
    word = int(np.where(allowed, panel_of(reader, selection).scores, -np.inf).argmax())
    document = int(reader.document_of_word[word])
    place = word - int(reader.firsts[document])
    return document, place, place + 1


def _around(reader: Reader, place: Place, most: int) -> np.ndarray:
    """Positions of the sentence of a span, at most `most` of them, those nearest to the span."""
    document, start, end = place
    first, last = next(one for one in reader.documents[document].sentences if one[0] <= start < one[1])
    sentence = reader.sequence.positions(document, (first, max(last, end)))
    middle = np.searchsorted(sentence, reader.positions(place)).mean()
    begin = int(min(max(round(middle - most / 2), 0), max(0, len(sentence) - most)))
    end, words = min(begin + most, len(sentence)), reader.words[sentence]
    while 0 < begin < end - 1 and words[begin] == words[begin - 1]:  # never cut inside a word, as a number
        begin += 1
    while begin + 1 < end < len(sentence) and words[end] == words[end - 1]:
        end -= 1
    return sentence[begin:end]


def _texts(reader: Reader, positions: np.ndarray) -> list[str]:
    """The tokens at these positions, with an ellipsis where their sentence continues."""
    texts = token_texts(reader.tokenizer, reader.sequence.input_ids[positions])[0]
    document = int(reader.sequence.document[positions[0]])
    first, last = (int(reader.sequence.word[positions[end]]) for end in (0, -1))
    (sentence,) = (one for one in reader.documents[document].sentences if one[0] <= first < one[1])
    texts[0] = f"\u2026 {texts[0]}" if first > sentence[0] else texts[0]
    texts[-1] = f"{texts[-1]} \u2026" if last < sentence[1] - 1 else texts[-1]
    return texts


class ChosenSentences(AskBox):
    """Lists of models, views and directions, and a button that draws the explorer's selection in bertviz.
    `draw` takes the name of a `model`, the `view` `head` or `model`, and the `direction` `from` or `to`, and
    returns HTML. Without a selection, a line says what to do, also in a run without a person."""

    keeps = True

    def __init__(
        self, draw: Callable[..., str], *, models: Sequence[str], show: Callable[[str], None] | None = None
    ) -> None:
        lists = {
            "model": Dropdown(options=list(models), value=models[-1], description="model"),
            "view": Dropdown(options=VIEWS, description="view"),
            "direction": Dropdown(options=DIRECTIONS, description="attention"),
        }
        super().__init__(draw, lists, button="Show what is chosen above", show=show)

    def offer(self, models: Sequence[str]) -> None:
        """Replace the list of models, and select the last one."""
        model = self.fields["model"]
        model.options, model.value = list(models), models[-1]

    def show(self) -> None:
        """Display the controls and, below them, the view of the selection, or a line that says what to do."""
        try:
            super().show()
        except ValueError as error:
            self._show(div(escaped(str(error)), MUTED))
