"""Papers of CL-SciSumm and ScisummNet: their loose XML, their names, and where in them a passage stands."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from cdlm_lab.data.document_pairs import PairDocument

_TAG = re.compile(r"<(/?)(S|SECTION|ABSTRACT|PAPER)(\s[^<>]*)?>")
_SID = re.compile(r"""\bsid\s*=[\s"']*(\d{1,9})""")
_ANTHOLOGY_ID = re.compile(r"([A-Z]\d\d-\d{4})(?:-PARSCIT\d*)?", re.IGNORECASE)
_NOT_A_LETTER = re.compile(r"[\W_]+")
LEAST = 20  # letters and digits of a passage that can be told from others


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """One text of a paper, as it stands in one file.

    `numbers`: of its sentences, as the file gives them in "sid"; None where it gives none. `letters`: letters
    and digits of all the sentences, lower-case, without gaps, and `ends`: where in them each sentence ends.
    """

    document: PairDocument
    numbers: tuple[int | None, ...]
    letters: str = field(repr=False)
    ends: tuple[int, ...] = field(repr=False)

    def numbered(self, sid: int) -> int | None:
        """Place of the first sentence of this number."""
        return self.numbers.index(sid) if sid in self.numbers else None

    def containing(self, passage: str) -> tuple[int, ...]:
        """Sentences over which a passage extends, by its letters and digits alone; () if it is not there, in
        several places, or too short to tell."""
        wanted = letters_of(passage)
        start = self.letters.find(wanted)
        if len(wanted) < LEAST or start < 0 or self.letters.find(wanted, start + 1) >= 0:
            return ()
        first, last = (bisect_right(self.ends, place) for place in (start, start + len(wanted) - 1))
        return tuple(
            number for number in range(first, last + 1) if letters_of(self.document.sentences[number])
        )


def parse_paper(identifier: str, source: str) -> Paper | None:
    """The sentences of a file, entities resolved; None if it has none. Empty sentences are left out."""
    found = []
    tags = list(_TAG.finditer(source))
    # A sentence ends at the next tag, of whatever kind: some are not closed.
    for tag, end in zip(tags, [*(tag.start() for tag in tags[1:]), len(source)], strict=False):
        if tag[2] == "S" and not tag[1] and (sentence := plain_text(source[tag.end() : end])):
            sid = _SID.search(tag[3] or "")
            found.append((int(sid[1]) if sid else None, sentence))
    if not found:
        return None
    numbers, sentences = zip(*found, strict=True)
    letters = [letters_of(sentence) for sentence in sentences]
    return Paper(
        document=PairDocument(id=identifier, sentences=sentences),
        numbers=numbers,
        letters="".join(letters),
        ends=tuple(accumulate(map(len, letters))),
    )


def decode(content: bytes) -> tuple[str, int]:
    """Text of a file without byte order mark, and how many bytes or runs of bytes that are not UTF-8 were
    replaced by U+FFFD."""
    text = content.decode("utf-8", "replace").replace("\0", "\ufffd").removeprefix("\ufeff")
    return text, text.count("\ufffd") - content.count("\ufffd".encode())


def plain_text(source: str) -> str:
    """Text without tags, entities (some are written twice: &amp;lt;) and superfluous white space."""
    return " ".join(html.unescape(html.unescape(_TAG.sub(" ", source))).split())


def letters_of(text: str) -> str:
    """Lower-case letters and digits alone."""
    return _NOT_A_LETTER.sub("", text).lower()


def paper_id(name: str, reference: str) -> str:
    """Id of the paper in a file of the folder of a reference paper: that of the ACL Anthology, if the file is
    named so, or else "C04-1089/file", for such names mean nothing elsewhere."""
    match = _ANTHOLOGY_ID.fullmatch(plain := file_stem(name))
    return match[1].upper() if match else f"{reference}/{plain.lower().replace('_', '-')}"


def file_stem(name: str) -> str:
    """Name of a file as annotations give it, without folders, ".xml" and ".txt"."""
    return re.sub(r"\.(?:xml|txt)$", "", name.strip().rpartition("/")[2], flags=re.IGNORECASE)
