"""Puts this folder on the path, so that the tests find valid_inputs.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
