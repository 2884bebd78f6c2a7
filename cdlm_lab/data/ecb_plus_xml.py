"""Safe reading of an ECB+ file, for the readers of its text and of its annotation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from cdlm_lab.data.files import DataError, read_text

_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EcbXml:
    """A parsed file of the corpus: its path, its source and the root of its elements."""

    path: Path
    source: str
    root: Element

    def error(self, what: str, remedy: str, *, field: str, mark: str = "") -> DataError:
        """A complaint, to be raised, about the line in which `mark` first stands."""
        line = self.source[: max(0, self.source.find(mark))].count("\n") + 1
        return DataError(self.path, what, remedy, line=line, field=field)

    def sentence(self, token: Element) -> int:
        """Number of the sentence that a token belongs to. Raises DataError if it has none."""
        number = token.get("sentence", "")
        if _NUMBER.fullmatch(number):
            return int(number)
        mark = f't_id="{token.get("t_id")}"'
        what = f"{number!r} of the token {mark} is not a number" if number else f"missing in the token {mark}"
        raise self.error(what, 'write the number from 0, as in sentence="3"', field="sentence", mark=mark)


def read_ecb_xml(path: Path) -> EcbXml:
    """Parse a file without expanding or fetching anything.

    Raises:
        DataError: it is not XML, or defines entities, and as `files.read_lines`.
    """
    source = read_text(path)
    try:
        return EcbXml(path=path, source=source, root=fromstring(source))
    except ParseError as error:
        line, column = error.position
        remedy = "copy the file again from the official release"
        raise DataError(path, f"not XML ({error})", remedy, line=line, field=f"column {column + 1}") from None
    except DefusedXmlException as error:
        remedy = "remove the DOCTYPE: the corpus has none"
        line = source[: max(0, source.find("<!DOCTYPE"))].count("\n") + 1
        what = f"the XML defines entities ({error})"
        raise DataError(path, what, remedy, line=line, field="DOCTYPE") from None
