"""Lines of Python by folder, and the current exceptions to the rules for sizes.

python tests/rules/lines.py            # lines and files of each folder
python tests/rules/lines.py --lower    # exceptions in ratchet.json that the tree no longer needs get smaller
"""

import json
import sys

import size_rules as sizes
from house_rules import read_modules


def main(arguments: list[str]) -> int:
    """Print the lines by folder, or lower the exceptions; return the exit code."""
    library, tests = read_modules(sizes.ROOT), read_modules(sizes.ROOT, "tests")
    if arguments == ["--lower"]:
        kept = sizes.lowered(sizes.count_all(library, tests), sizes.read_ratchet())
        sizes.RATCHET.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        print(f"wrote {sizes.RATCHET}")
        return 0
    if arguments:
        print(__doc__)
        return 2
    files = sizes.files_in_folders()
    for modules in (library, tests):
        for folder, lines in sizes.lines_of_folders(modules).items():
            limit = sizes.LIMITS["lines"].get(folder)
            own = f"{files.get(folder, 0):4} files"
            print(f"{folder:32}{lines:8,} lines  {own}{f'  (aim: {limit:,} lines)' if limit else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
