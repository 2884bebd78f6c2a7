"""Which tokens models attend to across documents (CDLM section 3.5: Figure 3 and Table 6): notebook 11."""

from cdlm_lab.explorer.explorer import explore
from cdlm_lab.explorer.ranks import (
    Settings,
    distribution_view,
    evaluate,
    gap_view,
    head_views,
    predict,
    prepare,
    preview,
    report,
    table_view,
)

__all__ = ["Settings", "evaluate", "explore", "predict", "prepare", "preview", "report"]
__all__ += ["distribution_view", "gap_view", "head_views", "table_view"]
