"""Citations are taken out of sentences, and nothing else that looks a little like them."""

import subprocess
import sys

import pytest

from cdlm_lab.data.scisumm import without_citations


@pytest.mark.parametrize(
    ("sentence", "bare"),
    [
        ("It is computed as usual (Shao and Ng, 2004).", "It is computed as usual."),
        ("We take trees (see Brill, 1995; Wu et al., 2004b) apart.", "We take trees apart."),
        ("As Brill and Wu (2000, 2004) show, it works.", "As show, it works."),
        ("Smith, Jones and van der Berg (2004) agree.", "agree."),
        ("Lee et al.'s (2010, p. 5) bank", "bank"),
        ("Müller (1999) says so [12], and others [3, 5-7] too.", "says so, and others too."),
        ("Early work [Brill, 1995] failed.", "Early work failed."),
        ("(2010) combined both.", "combined both."),
        ("(Brill, 1995)", "."),
        ("It has (one, two) parts, as in 1999 (and later).",
         "It has (one, two) parts, as in 1999 (and later)."),
        ("We use x [i] and 1995 words.", "We use x [i] and 1995 words."),
        ("Brill's tagger, of Brill 1995,  is fast.", "Brill's tagger, of Brill 1995, is fast."),
        ("", "."),
    ],
)  # fmt: skip
def test_without_citations(sentence, bare):
    assert without_citations(sentence) == bare
    assert without_citations(bare) == bare


READS_LONG_TEXTS = """
from cdlm_lab.data.scisumm import without_citations
for piece in "(", "(A ", "A, ", "A and ", "van ", "(A 1999 ", "[1,", "[1999 ", "A", "'", "(A b ", "A et al. ":
    print(repr(piece), flush=True)
    without_citations(piece * (200_000 // len(piece)))
"""


def test_no_text_takes_for_ever():
    # All take half a second; each would take hours if brackets were looked for without bound.
    subprocess.run([sys.executable, "-c", READS_LONG_TEXTS], check=True, timeout=1200)
