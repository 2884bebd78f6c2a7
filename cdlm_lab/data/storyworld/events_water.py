"""Event types: a river flood, a fire in a mill, a ship in distress."""

from __future__ import annotations

from cdlm_lab.data.storyworld.grammar import (
    EventType,
    body,
    building,
    comparison,
    person,
    place,
    quantity,
    unit,
)
from cdlm_lab.data.storyworld.shared_cast import event_type

# ruff: noqa: E501 -- a sentence with its wordings is easier to read on one line


FLOOD: EventType = event_type(
    name="flood",
    groups=("disaster",),
    nouns="flood|flooding|disaster|inundation",
    words={
        "job": ("clear the silt", "rebuild the dyke", "pump out the cellars"),
        "deed": (
            "rang the church bell to raise the alarm",
            "first saw the water coming",
            "woke the whole street",
        ),
        "source": (
            "officials",
            "the flood service",
            "the civil defence office",
            "the authorities",
            "the fire brigade",
        ),
    },
    cast={
        "minister": person("environment minister|interior minister"),
        "river": place("river", "the River @"),
        "dam": building("reservoir", "the @ reservoir|the @ dam"),
        "chief": person("fire chief|head of civil defence|rescue chief"),
        "expert": person("hydrologist|climate researcher|geologist", definite=False),
        "company": body("power company|chemical maker|brewery", "@ Group|@ Industries|@ Works"),
        "quarter": place("quarter", "the @ quarter|the @ district"),
    },
    numbers={
        "dead": quantity(12, 97, "How many people were killed in {town.name}?", "The water killed # people."),
        "missing": quantity(11, 98, "How many people are missing?", "As many as # people are missing."),
        "homes": quantity(1103, 9876, "How many homes were flooded?", "The water entered # homes."),
        "evacuated": quantity(
            10213, 98765, "How many people were evacuated?", "Rescuers evacuated # people."
        ),
        "level": quantity(
            413, 987, "How many centimetres did the gauge show?", "The gauge showed # centimetres."
        ),
        "rain": quantity(
            113, 398, "How many millimetres of rain fell?", "In one night # millimetres of rain fell."
        ),
        "bags": quantity(10213, 98765, "How many sandbags were filled?", "Helpers filled # sandbags."),
        "boats": quantity(31, 298, "How many boats took part?", "The rescue used # boats."),
        "cattle": quantity(213, 4987, "How many animals drowned?", "On the farms # animals drowned."),
        "hectares": quantity(
            1213, 9876, "How many hectares stood under water?", "Fields of # hectares were flooded."
        ),
    },
    texts={
        "what": (
            "{river} <[burst its banks|broke its banks|broke through a dyke]~main> [at|near] {town}",
            "{town} was <[flooded|inundated|swamped]~main> by {river}",
            "the waters of {river} <[swept through|poured into|swamped]~main> {town}",
        ),
        "after": ("the <[flood|flooding|inundation]~main> [in|of] {town}", "the <disaster~main> on {river}"),
        "headlines": (
            "Dozens dead as river [bursts its banks|breaks dyke]",
            "Thousands [flee|driven from homes] as [river rises|water rises|dyke breaks]",
            "[After the water, the mud|Night of the flood|A town under water]",
            "Anger grows over [failed|broken] dyke",
            "[Flood victims|Families] wait for [help|answers]",
            "Flood [toll rises|damage runs into millions]",
            "What the river [took|left behind]",
        ),
        "leads": (
            "[At least|No fewer than] {dead} people [were killed|died|drowned] and {missing} [others |more |]were missing after {>what} [on {$day}|in the night to {$day}].",
            "{>what} [early |late |]on {$day}, [killing|drowning] {dead} people and [forcing|driving] {evacuated} [others |]from their homes.",
            "Rescuers [in boats|with boats and helicopters] [searched|combed] {town} on {$day} for {missing} missing people [after|hours after] {river} <[broke its banks|overflowed]~main>.",
            "A <[flood|flash flood|wall of water]~main> [tore|swept] through {town} on {$day}, [leaving|and left] {dead} people dead and {homes} homes under water.",
            "The [number|count] of people killed [when|after] {>what} [rose|climbed|has risen] to {dead} on {$next}, [and|while] {missing} were still missing.",
        ),
    },
    units=(
        unit(
            "toll",
            "core",
            "the bodies of {dead} people [have been|were] [found|recovered]",
            "{chief} [put|gave] the number of [people killed|dead] at {dead}",
            "[in all,|altogether,] {dead} people [lost their lives|were killed|drowned]",
            "the {ev} killed {dead} people, [most|many] of them [asleep in ground-floor flats|in their cars|over sixty]",
        ),
        unit(
            "missing",
            "core",
            "[the search went on|teams were searching] for {missing} missing people[, among them four children|, most of them campers|]",
            "there was [no trace|no sign] of {missing} missing people",
            "[another|a further] {missing} people were [still |]missing",
        ),
        unit(
            "evacuated",
            "core",
            "[soldiers and firemen|rescuers|the army] <[evacuated|brought out|took out]~evacuation> {evacuated} people[ by boat and lorry| before dark|]",
            "some {evacuated} people had to [leave their homes|be <evacuated~evacuation>]",
            "{chief} said {evacuated} people had been <[evacuated|moved to safety]~evacuation>.",
            "the <evacuation~evacuation> of {evacuated} people [took all night|went on until dawn]",
        ),
        unit(
            "gauge",
            "core",
            "[the gauge|the level] at {dam} [stood at|reached|showed] {level} centimetres[, the highest since records began|]",
            "{river} [rose|had risen] to {level} centimetres at {dam}",
            "a level of {level} centimetres was [measured|read] at {dam}",
        ),
        unit(
            "rain",
            "core",
            "[in a single night|within ten hours] {rain} millimetres of rain fell [on|over] {region}",
            "the <[downpour|rainstorm]~rain> [brought|dropped] {rain} millimetres of rain on {region}",
            "forecasters [measured|recorded] {rain} millimetres of rain in {region}",
        ),
        unit(
            "homes",
            "core",
            "[the water|the mud] [filled|entered|ruined] {homes} homes[, most of them in {quarter}|]",
            "{quarter} was [worst|hardest] hit: of {homes} homes [flooded|damaged], most stand there.",
            "[inspectors|surveyors] [counted|listed] {homes} homes [damaged by the water|under water|no one can live in]",
        ),
        unit(
            "chief",
            "core",
            '"[We have never seen water rise so fast|The river gave us forty minutes, no more|My crews have not slept]," said {chief}.',
            "{chief.sub} said [it was|this was] [the hardest night of a long career|a race that could not be won|not over yet].",
            "{chief.sub} [asked|urged|told] people to [stay away from the river|boil their water|keep off the dykes].",
        ),
        unit(
            "bags",
            "people",
            "volunteers [filled|stacked] {bags} sandbags[ through the night| by the light of tractors|]",
            "a [human chain|line of volunteers] [moved|passed along] {bags} sandbags",
            "{river} [pushed aside|washed away] {bags} sandbags",
        ),
        unit(
            "boats",
            "official",
            "a fleet of {boats} boats, [many of them private|some borrowed from anglers], [took part|joined the rescue]",
            "the navy [sent|lent] {boats} boats",
            "rescuers [worked|went out] with {boats} boats and [two helicopters|three helicopters]",
        ),
        unit(
            "cattle",
            "money",
            "farmers [lost|are mourning] {cattle} animals, [mostly|most of them] [cows|sheep|pigs]",
            "on the farms [downstream|below the town], {cattle} animals drowned",
            "the carcasses of {cattle} animals [have to be|must be] [burned|taken away]",
        ),
        unit(
            "fields",
            "money",
            "[the harvest|the barley] on {hectares} hectares is [lost|ruined]",
            "brown water covers {hectares} hectares of farmland",
            "[growers|farmers' leaders] said {hectares} hectares would [yield nothing|bring no harvest] this year.",
        ),
        unit(
            "dyke",
            "back",
            "the dyke [that failed|at {quarter}] was [built|raised] in {before} after [an earlier|another] flood[ at {other}|]",
            "the last time, in {before}, the river came as far as [the church steps|{other}]",
            "after the flood of {before}, [engineers|planners] had asked for a [higher|second] dyke [near|at] {other}",
        ),
        unit(
            "expert",
            "back",
            '"[A warmer sky carries more water|Rivers need room, and we took it|What used to come once in a century now comes twice in a life]," said {expert}.',
            "{expert.sub} [blamed|pointed to] [the paving of the meadows|houses built too near the river|straightened banks].",
            "{expert.sub} said the dam [should have been emptied|ought to have been opened] [two days before|earlier].",
        ),
        unit(
            "cars",
            "colour",
            "[cars hung in trees|cars lay on their roofs] along {road}, and [a piano stood in the middle of the street|someone's wedding dress hung from a lamp post]",
            "[on {road}|along {road}] [the mud|a brown paste] [reached|came up to] the window sills",
            "{road} [smelt|smelled] of [diesel and mud|heating oil|wet plaster]",
        ),
    ),
    comparison=comparison(
        "[the fire brigade|crews] [pumped|emptied] {COUNT} cellars in {PLACE}",
        "in {PLACE}, {COUNT} cellars [were flooded|stood full of water]",
        which="Where were more cellars flooded, in {place_a.name} or in {place_b.name}?",
        whether="Were more cellars flooded in {place_a.name} than in {place_b.name}?",
    ),
)

EVENTS: tuple[EventType, ...] = (FLOOD,)
