"""The score table of every experiment, by the name in its reports."""

from __future__ import annotations

from collections.abc import Mapping

from cdlm_lab.explorer import view as explorer
from cdlm_lab.tasks.coreference import view as coreference
from cdlm_lab.tasks.joint import answers_view, claims_view
from cdlm_lab.tasks.matching import view as matching
from cdlm_lab.tasks.multihop import view as multihop
from cdlm_lab.tasks.pretraining import view as pretraining
from cdlm_lab.tasks.tagging import view as tagging
from cdlm_lab.views.score_tables import Layout

LAYOUTS: Mapping[str, Layout] = {
    "cross-document perplexity": pretraining.LAYOUT,
    "coreference": coreference.LAYOUT,
    "document matching": matching.MATCHING_LAYOUT,
    "sentence alignment": matching.ALIGNMENT_LAYOUT,
    "multihop question answering": multihop.LAYOUT,
    "document-attentive tagging": tagging.LAYOUT,
    "answer selection": answers_view.LAYOUT,
    "fact verification": claims_view.LAYOUT,
    "attention analysis": explorer.LAYOUT,
}
