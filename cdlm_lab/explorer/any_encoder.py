"""`cdlm_lab.explore`: the explorer for any Hugging Face encoder that returns its attention, without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.attention.layer import LocalGlobalSelfAttention
from cdlm_lab.data.marked import marked_texts
from cdlm_lab.encoders.language_model import longest
from cdlm_lab.encoders.packed import replace_self_attention
from cdlm_lab.encoders.source_attention import predicts
from cdlm_lab.explorer.explorer import headline_of
from cdlm_lab.explorer.reading import Selection, panel_of, read_documents
from cdlm_lab.explorer.widget.content import Content, ShownDocument
from cdlm_lab.explorer.widget.widget import Explorer
from cdlm_lab.views.answers import texts_of
from cdlm_lab.views.html import counted, document_name


def explore(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: str | Sequence[str] | Mapping[str, str],
    *,
    max_length: int | None = None,
) -> Explorer:
    """Show where a model looks in texts that it reads together: a widget, which `save_html` writes as a page.

    A tokenizer with `<doc-s>` and `</doc-s>`, as CDLM has them, writes each text between these, any other one
    between its first and last special token (`[CLS]` and `[SEP]`). Texts that do not fit are cut to equal
    shares, and a line says so. The model is not changed.

    Args:
        model: any that computes attention through transformers' attention interface (BERT, RoBERTa,
            ModernBERT, ...), or a Longformer, in which the chosen words have global attention. A masked
            language model also guesses hidden words.
        tokenizer: the model's fast tokenizer.
        texts: one, several, or texts by name; mentions between `<m>` and `</m>` are underlined.
        max_length: most tokens that are read; None = as many as the model takes.

    Raises ValueError for a model or tokenizer that does not fit, in one line.
    """
    if not tokenizer.is_fast:
        raise ValueError(f"{type(tokenizer).__name__} is no fast tokenizer, which places of words need")
    if any(hasattr(one, "query_global") and not isinstance(one, LocalGlobalSelfAttention)
           for one in model.modules()):  # fmt: skip
        model = replace_self_attention(deepcopy(model))
    documents = list(marked_texts(texts_of(texts), kind="event", needs_marks=False).documents)
    form = {"max_length": max_length or longest(model.config)}
    (reader,) = read_documents(documents, {type(model).__name__: (model, tokenizer)}, **form)
    cuts = reader.can_be_cut and len(documents) > 1
    note = ""
    if lost := sum(reader.sequence.lost_tokens):
        note = f"{counted(lost, 'token')} at the ends of texts, in grey, are more than the model reads"
    content = Content(
        documents=list(map(_shown, documents)),
        models=[reader.name],
        layers=model.config.num_hidden_layers,
        heads=model.config.num_attention_heads,
        answer=lambda chosen: [panel_of(reader, chosen)],
        predicts=predicts(model),
        cuts=cuts,
        selection=Selection(source=(0, 0, 1), layer=model.config.num_hidden_layers - 1),
        note=note,
    )
    return Explorer(content, title=f"Where does {type(model).__name__} look?")


def _shown(document: Any) -> ShownDocument:
    return ShownDocument(
        name=document_name(document.id, headline_of(document)),
        words=document.tokens,
        sentences=document.sentences,
        mentions=tuple((*mention.tokens, "") for mention in document.mentions),
    )
