"""Puts this folder on the path, so that the tests share small_reports.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
