"""Invented names for storyworld: syllables of six phonologies, more than a million words of each kind.

A name is drawn for one story and never again, so a model cannot know it: it has to read it in another report
of the same cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Phonology:
    """Parts of the words of one invented language; a word is made of two to four syllables."""

    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    middles: tuple[str, ...]
    female: tuple[str, ...]
    male: tuple[str, ...]
    surname: tuple[str, ...]
    place: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PHONOLOGIES: tuple[Phonology, ...] = (
    Phonology(
        onsets=_words("b br d dr f g gr h hj k kl kr l m n r s sk sn st sv t tr v"),
        vowels=_words("a e i o u ei au y oe"),
        middles=_words("l ld lm ln lv m mb n nd ng nk nt r rd rk rl rm rn rst rt rv s sk st tt v vn gd"),
        female=_words("a e i id un hild rid ja ina ild va ka lin"),
        male=_words("ar ir en ulf vin mund rik dan leif var or ens"),
        surname=_words("sen vik dal berg holt gaard lund strand nes rud moe haug stad mark"),
        place=_words("vik havn dal nes stad fjell sund holm voll berg fors mo"),
    ),
    Phonology(
        onsets=_words("b c d f g l m n p r s t v br cr fr gr pr tr st sp ch gl pl"),
        vowels=_words("a e i o u ia io"),
        middles=_words("b c d g l ll m n nn r rr s ss t tt v z lt nt nd rc rd rn rt st sc mp"),
        female=_words("a ella ina etta isa ana essa ora illa ita"),
        male=_words("o io eno ardo esto ino aldo ico ente ano"),
        surname=_words("etti aro ini oni elli ucci ano esco ante olla ardi ese ori asso"),
        place=_words("ano eto aro ella ola one ino esco alta ara ona ento"),
    ),
    Phonology(
        onsets=_words("b br ch d dr g gr h j k kr l m n p pr r s st t tr v z zl sl mir vl"),
        vowels=_words("a e i o u ya ye"),
        middles=_words("b d g k l m n r s sh t v z zh ch d dn lk lm rk rm rn sl sn st tr vl zd nk"),
        female=_words("a ena ana ica ka ina lia mila ya ora"),
        male=_words("an ek en il in ir ko mir or slav ush"),
        surname=_words("ov ev in sky enko ic ak ec ar ik uk an ovic"),
        place=_words("ov itsa grad sk nik evo ava ets ino ar osk ec"),
    ),
    Phonology(
        onsets=_words("b d f g h k l m n p r s t w y z ch sh j ny mb nd ts kw"),
        vowels=_words("a e i o u aa ee"),
        middles=_words("b d g k l m n ng nd mb r s sh t w y z nj mw kw nz ns nt nk mp lw"),
        female=_words("a isha uma ina eka iwe elo ani ara esi"),
        male=_words("o u i ani eko emba ulo iko ande ari"),
        surname=_words("eke ala ongo imba uru ande oni awa isu ola embe ari osi"),
        place=_words("ala ani anga ore uru emba iro ondo asa eni aru oko"),
    ),
    Phonology(
        onsets=_words("b br c cl cr d dr f g gl h l m n p pr r rh s t tr th w gw cw ll"),
        vowels=_words("a e i o u ae y ow"),
        middles=_words("b dd d f g l ll lm lw m n nd nn r rch rd rn rth s st t th w wn gl gr dr"),
        female=_words("en wen ys ian eth a ra yth ena is"),
        male=_words("an or yn ac ed al og us en ith"),
        surname=_words("ance ell ock ow ard ridge by ston ley worth ern ach more ick"),
        place=_words("mouth ford bury wick combe ley ham wen pont don aber mere"),
    ),
    Phonology(
        onsets=_words("b d f g h j k kh l m n p q r s sh t v y z zh ch dz t"),
        vowels=_words("a e i o u ai ay"),
        middles=_words("b d f g h kh l m n r s sh t v z lm rd rj rs rz st sht nd nj mr bd lf rf hm"),
        female=_words("a eh ina ira ana aya ida oza il een"),
        male=_words("ad ar an ir ud im id oz al uf"),
        surname=_words("adeh ani avi ian pour zad eri idze shvili abad oyan ari iev ul"),
        place=_words("abad an kent ash dan iz ur ava shahr ul ar ok"),
    ),
)


def draw(rng: Random, options: tuple[str, ...]) -> str:
    """One of the options, evenly; `random.choice` with an algorithm that no Python version may change."""
    return options[int(rng.random() * len(options))]


def name_word(rng: Random, phonology: Phonology, *, endings: tuple[str, ...], taken: set[str]) -> str:
    """A capitalised invented word that is not in `taken` (lower case); adds it there."""
    while True:
        onset, vowel = draw(rng, phonology.onsets), draw(rng, phonology.vowels)
        middle, ending = draw(rng, phonology.middles), draw(rng, endings)
        word = onset + vowel + middle
        if ending[0] not in "aeiouy":
            word += draw(rng, phonology.vowels)
            if rng.random() < 0.4:
                word += draw(rng, phonology.onsets) + draw(rng, phonology.vowels)
        elif rng.random() < 0.88:  # the short words are only some ten thousands
            word += draw(rng, phonology.vowels) + draw(rng, phonology.onsets)
        word = (word + ending).replace("yy", "y").replace("iii", "ii").replace("ww", "w")
        if 5 <= len(word) <= 12 and word not in taken:
            taken.add(word)
            return word.capitalize()


def number_text(rng: Random, *, low: int, high: int, taken: set[str], grouped: bool = True) -> str:
    """A number in [low, high] in digits, by thousands if `grouped`; no group of digits is taken twice."""
    for _ in range(1000):
        value = low + int(rng.random() * (high - low + 1))
        text = f"{value:,}" if grouped else str(value)
        groups = [group for group in text.split(",") if len(group) > 1]
        if value % 10 and not any(group in taken for group in groups) and len(set(groups)) == len(groups):
            taken.update(groups)
            return text
    raise ValueError(f"no number is left between {low} and {high}; widen the range in the story's table")
