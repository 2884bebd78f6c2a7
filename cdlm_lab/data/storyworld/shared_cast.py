"""The cast, numbers and plain words that every kind of event has, and the two-document questions about them."""

from __future__ import annotations

from cdlm_lab.data.storyworld.grammar import (
    Bridge,
    Comparison,
    EventType,
    Part,
    Quantity,
    Unit,
    body,
    bridge,
    building,
    compile_all,
    person,
    place,
    quantity,
)

# ruff: noqa: E501 -- a sentence with its wordings is easier to read on one line


CAST: dict[str, Part] = {
    "town": place("town|city|market town|port town"),
    "region": place("province|district", "@ province|@ district|@ county"),
    "mayor": person("mayor"),
    "minister": person("interior minister"),
    "company": body("operator", "@ Group|@ Industries|@ Holdings"),
    "resident": person("baker|bus driver|teacher|nurse|hairdresser|plumber|waiter|librarian", definite=False),
    "elder": person("retired miner|former postman|pensioner|widow|retired sailor|sexton", definite=False),
    "student": person("student|apprentice|trainee cook|violinist|shop assistant|courier", definite=False),
    "expert": person("professor of law|historian|economist|sociologist", definite=False),
    "judge": person("retired judge|former ombudsman|former prosecutor", definite=False),
    "lawyer": person("lawyer|barrister|solicitor", definite=False),
    "organiser": person("organiser|campaigner|youth worker|parish priest", definite=False),
    "deputy": person("opposition leader|deputy mayor|council chairman"),
    "speaker": person("company spokesman|chief executive|managing director"),
    "reporter": person("editor|photographer", definite=False),
    "insurer": body("insurer", "@ Mutual|@ Assurance|@ Re"),
    "bank": body("bank", "@ Bank|@ Savings Bank|@ Capital"),
    "paper": body("newspaper", "@ Courier|@ Post|@ Tribune|@ Herald"),
    "charity": body("charity", "@ Relief|@ Aid|@ Trust"),
    "school": building("school", "the @ school|the @ grammar school"),
    "hall": building("hall", "@ Hall|the @ sports hall|the @ community centre"),
    "hotel": building("hotel", "the @ hotel|the Hotel @|the @ inn"),
    "square": place("square", "@ Square|@ Park|@ Place"),
    "road": place("road", "@ Road|@ Avenue|@ Street"),
    "other": place("town|city|village"),
    "firm": body("company", "@ Engineering|@ Services|@ Works"),
    "seat": place("town|city"),
    "finder": person("electrician|gardener|postwoman|farmhand|florist|locksmith|optician", definite=False),
    "birthplace": place("village|town"),
    "donor": body("foundation", "@ Foundation|@ Fund"),
    "chair": person("head"),
    "author": person("engineer|geographer|lecturer|auditor", definite=False),
    "college": body("university", "@ University|@ College|@ Polytechnic"),
    "place_a": place("village|parish|suburb"),
    "place_b": place("village|parish|suburb"),
}

NUMBERS: dict[str, Quantity] = {
    "drop": quantity(11, 98, "By how many points did shares in {company.name} fall?"),
    "loss": quantity(113, 989),
    "fund": quantity(
        113,
        989,
        "How many millions did the government set aside for {town.name}?",
        "The government set aside # million {$money} for {town.name}.",
    ),
    "term": quantity(
        31, 198, "Within how many days is the inquiry to report?", "The inquiry has # days to report."
    ),
    "calls": quantity(
        1203, 9876, "How many calls did the telephone line receive?", "The telephone line received # calls."
    ),
    "crowd": quantity(1204, 9876, "How many people gathered?", "A crowd of # people gathered."),
    "officers": quantity(113, 987, "How many officers were on duty?", "The police had # officers on duty."),
    "asked": quantity(1013, 4876, "How many people were asked in the poll?", "The poll asked # people."),
    "percent": quantity(52, 97, "What percentage took that view in the poll?"),
    "claims": quantity(113, 989, "At how many millions did {insurer.name} put the claims?"),
    "raised": quantity(21304, 98764, "How much had been given?", "The collection brought in # {$money}."),
    "ayes": quantity(21, 98, "How many members voted in favour?", "The motion had # votes in favour."),
    "noes": quantity(11, 20),
    "clients": quantity(
        112, 987, "How many clients does {lawyer.name} represent?", "The lawyer speaks for # clients."
    ),
    "signatures": quantity(
        10234, 98765, "How many people signed the petition?", "The petition has # signatures."
    ),
    "pupils": quantity(213, 1876, "How many pupils were sent home?", "The school sent # pupils home."),
    "pages": quantity(
        113, 987, "How many pages does the earlier report have?", "The earlier report has # pages."
    ),
    "before": quantity(1951, 2014, year=True),
    "founded": quantity(1104, 1897, "In which year was {town.name} founded?", year=True),
    "jobs": quantity(1023, 9876, "How many people work in the trade?"),
    "rooms": quantity(31, 298, "How many rooms does the hotel have?", "The hotel has # rooms."),
    "detour": quantity(21, 98, "How long is the detour in kilometres?", "The detour is # kilometres long."),
    "documents": quantity(
        1204, 9876, "How many documents were handed over?", "Investigators have # documents."
    ),
    "grant": quantity(
        1204, 9876, "How much does each household receive?", "Each household receives # {$money}."
    ),
    "stalls": quantity(31, 298, "How many stalls does the market have?", "The market has # stalls."),
    "gift": quantity(10234, 98765),
    "written": quantity(1990, 2017, year=True),
    "count_a": quantity(113, 989),
    "count_b": quantity(113, 989),
}

WORDS: dict[str, tuple[str, ...]] = {
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "hour": ("four in the morning", "dawn", "noon", "six in the evening", "ten at night"),
    "money": ("crowns", "talers", "florins", "ducats", "shillings", "guilders"),
    "product": (
        "its plums",
        "glass",
        "leather",
        "its brass bands",
        "paper",
        "honey",
        "hand-woven linen",
        "wool",
    ),
    "source": (
        "officials",
        "the authorities",
        "the police",
        "local officials",
        "a spokesman for the council",
    ),
}
BRIDGES: tuple[Bridge, ...] = (
    bridge(
        "seat",
        "seat",
        link=(
            "the order to {$job} [went|was given] to {firm}",
            "the council [chose|hired|called in] {firm} to {$job}",
            "{firm} has been [asked|hired|engaged] to {$job}",
        ),
        reply=(
            "[among those watching closely is|one name heard often these days is] {firm}, which has its head office in {seat}.",
            "{firm}, [run from|based in] {seat}, [said|announced] it would [take on more staff|hire again this year]",
            "[work is not scarce in the region|not every business is suffering]: {firm}, with its head office in {seat}, has just [bought new lorries|opened a second yard].",
        ),
        question="In which place is the head office of the company that is to {$job}?",
    ),
    bridge(
        "birthplace",
        "birthplace",
        link=(
            "it was {finder} who {$deed}",
            "{finder} {$deed}, [the police said|as is now known|witnesses said]",
            "the [person|one] who {$deed} [was|is now known to be] {finder}",
        ),
        reply=(
            "{finder}, who [grew up|was raised] in {birthplace}, [spent the night making tea for neighbours|has lived here for eleven years].",
            'Life goes on, said {finder}, who was raised in {birthplace}: "We [open|start] at seven, as [always|ever]."',
            "{finder} came from {birthplace} as a child and [stayed|never left]",
        ),
        question="Where did the person grow up who {$deed}?",
    ),
    bridge(
        "chair",
        "chair",
        link=(
            "the [largest|biggest] [single |]gift, of {gift} {$money}, came from {donor}",
            "{donor} gave {gift} {$money}, [more than any other giver|the largest gift so far]",
            "no one gave more than {donor}, which sent {gift} {$money}",
        ),
        reply=(
            "{donor}, headed by {chair.name}, [also pays for|has long paid for] the [town's library|summer concerts|music school].",
            "{chair.name}, who heads {donor}, [spent the day|was seen] in the town hall",
            "{chair.name} has been at the head of {donor} [for nine years|since spring]",
        ),
        question="Who heads the foundation that made the largest gift?",
    ),
    bridge(
        "college",
        "college",
        link=(
            "[the danger was known|none of this is new]: {author} [had described|set out] [it|the risk] in a paper of {written}.",
            "a paper [from|dated] {written} had warned of [just this|such a day]; its author is {author}.",
            "{author} [wrote|published] a warning in {written} that [was filed and forgotten|few read]",
        ),
        reply=(
            "{author}, who [now |]teaches at {college}, [was among the visitors|has taken a room at the inn].",
            "students of {college} came [by bus|on foot] with {author}, who teaches there",
            "{author}, of {college}, [declined to comment|asked for patience|would not be drawn]",
        ),
        question="Where does the author of the early warning teach?",
    ),
)


def event_type(
    *,
    name: str,
    groups: tuple[str, ...],
    nouns: str,
    words: dict[str, tuple[str, ...]],
    cast: dict[str, Part],
    numbers: dict[str, Quantity],
    texts: dict[str, tuple[str, ...]],
    units: tuple[Unit, ...],
    comparison: Comparison,
) -> EventType:
    """An event type with its own cast, numbers and words laid over the common ones.

    Args:
        name: of the type.
        groups: "disaster" or "conflict"; decides which shared units fit.
        nouns: for the event, separated by "|".
        words: plain words.
        cast: its own parts.
        numbers: its own quantities.
        texts: "headlines" and "leads"; "what" (a clause that tells the event), "after" (a noun phrase for it).
        units: what to report; topic "core" for what every report may be expected to say.
        comparison: its question over two reports.
    """
    compiled = {key: compile_all(options) for key, options in texts.items()}
    return EventType(
        name=name,
        groups=groups,
        nouns=tuple(nouns.split("|")),
        words={**WORDS, **words},
        cast={**CAST, **cast},
        numbers={**NUMBERS, **numbers},
        headlines=compiled.pop("headlines"),
        leads=compiled.pop("leads"),
        macros=compiled,
        core=tuple(unit for unit in units if unit.topic == "core"),
        details=tuple(unit for unit in units if unit.topic != "core"),
        comparison=comparison,
    )
