"""Cross-document coreference resolution (CDLM sections 3.2, A.2, C.1; Tables 2 and 3): notebook 03."""

from cdlm_lab.runs.runs import train_model as train
from cdlm_lab.runs.runs import train_small
from cdlm_lab.tasks.coreference.evaluation import (
    clusters_view,
    errors_view,
    evaluate,
    own_documents,
    preview,
    report,
    summary,
    table_view,
    tree_view,
)
from cdlm_lab.tasks.coreference.experiment import SYSTEM, Settings, predict, prepare

__all__ = ["SYSTEM", "Settings", "evaluate", "predict", "prepare", "preview", "report", "summary", "train"]
__all__ += ["clusters_view", "errors_view", "own_documents", "table_view", "train_small", "tree_view"]
