"""Reporting angles: how long a report is, which topics it likes, and how it opens."""

from __future__ import annotations

from dataclasses import dataclass

from cdlm_lab.data.storyworld.grammar import Template, compile_all

# ruff: noqa: E501 -- a sentence with its wordings is easier to read on one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Angle:
    """A way to report. `likes`: topic to weight; `low`, `high`: words; `leads`: openings (empty: the event type's own)."""

    name: str
    likes: dict[str, float]
    low: int
    high: int
    leads: tuple[Template, ...] = ()


ANGLES: tuple[Angle, ...] = (
    Angle(name="agency", likes={"official": 0.3, "people": 0.2, "after": 0.1}, low=175, high=440),
    Angle(
        name="local",
        likes={"colour": 0.5, "voice": 0.35, "people": 0.25},
        low=200,
        high=570,
        leads=compile_all(
            (
                "[People in|Residents of|Those who live in] {town} [were still|are still] [trying to take in|coming to terms with|struggling to grasp] what [happened|took place] on {$day}, when {>what}.",
                "[Nobody|No one|Hardly anyone] in {town} [slept|got much sleep|went to bed] on {$day} night after {>what}.",
                "It was [just before|shortly after|about] {$hour} on {$day} that {>what}, and [by evening|within hours|before long] [all|most] of {town} [knew|had heard].",
                "The [bells|shutters|shops|cafes] of {town} [were silent|stayed silent|had fallen silent] on {$next}, the morning after {>what}.",
                "Ask anyone in {town} where they were on {$day} when {>what}, and [the answer comes at once|they will tell you to the minute|nobody hesitates].",
            )
        ),
    ),
    Angle(
        name="business",
        likes={"money": 0.6, "official": 0.1},
        low=170,
        high=430,
        leads=compile_all(
            (
                "[Shares in|The shares of] {company} [fell|slid|dropped|slipped] {drop} points [on {$next}|in early trading] after {>what} [the day before|on {$day}].",
                "{>after} on {$day} [could|may|will] cost {company} [as much as|up to|more than] {loss} million {$money}, [analysts|brokers|people close to the company] [estimate|reckon|say].",
                "[Investors|Creditors|Lenders and suppliers] [turned|looked] to {company} [on {$next}|for answers] after {>what}[, an event that analysts price at {loss} million {$money}|].",
                "{company} [put off|postponed|delayed] its half-year report on {$next}, a day after {>what}, and [warned of|spoke of|set aside money for] losses of {loss} million {$money}.",
            )
        ),
    ),
    Angle(
        name="follow-up",
        likes={"after": 0.5, "official": 0.2, "people": 0.15},
        low=180,
        high=500,
        leads=compile_all(
            (
                "A day after {>what}, [the questions are growing louder|attention turned to the cause|the search for answers began].",
                "[Investigators|Officials|Inspectors] [began|have begun|opened] [an inquiry|their work|a first round of interviews] on {$next} into {>after}.",
                "The [first|earliest] [findings|details] about {>after} [emerged|became known|were made public] on {$next}, a day later.",
                "{mayor} [promised|pledged|called for] [a full account|answers|an open inquiry] on {$next}, [one day|the morning] after {>what}.",
            )
        ),
    ),
    Angle(
        name="official",
        likes={"official": 0.6, "after": 0.2},
        low=155,
        high=360,
        leads=compile_all(
            (
                "In a statement [issued|released|read out] on {$next}, {mayor} [confirmed|acknowledged|gave details of how] {>what} on {$day}.",
                "The [government|cabinet] [met|held a special session] on {$next} to [discuss|deal with|consider] {>after}, [a spokesman|a spokeswoman|the press office] said.",
                "{minister} [told|informed|briefed] [parliament|deputies|the house] on {$next} about {>after}.",
                "[Both|All] [services involved|agencies concerned] have now [reported|filed reports] on {>after}, {minister} said on {$next}.",
            )
        ),
    ),
    Angle(
        name="profile",
        likes={"back": 0.6, "voice": 0.3, "colour": 0.15},
        low=220,
        high=610,
        leads=compile_all(
            (
                "[Until|Before] {$day}, few [outside|beyond] {region} had [heard|thought much] of {town}; then {>what}.",
                "For [years|decades|a generation] {town} [was known for|lived from|meant] {$product} [and little else|more than anything|above all], but since {$day}, when {>what}, it has been known for something else.",
                "To understand {>after}, [it helps to know|one has to know|you need to look at] the [history|past] of {town}.",
                "There had been [warnings|signs|omens], and [some|a few] in {town} [remember|recall] them now: on {$day} {>what}.",
            )
        ),
    ),
)
