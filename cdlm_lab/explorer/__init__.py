"""Which tokens models attend to across documents (CDLM section 3.5: Figure 3 and Table 6): notebook 11."""

import cdlm_lab.tasks  # noqa: F401 -- says that PyTorch is loading; shows interrupts in one line
