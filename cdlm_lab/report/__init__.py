"""What a run leaves behind: a folder that is refused if used, and `report.json`, from which tables are
made."""

from cdlm_lab.report.document import Report, read_report
from cdlm_lab.report.folder import Run, open_run
from cdlm_lab.report.values import RunError

__all__ = ["Report", "Run", "RunError", "open_run", "read_report"]
