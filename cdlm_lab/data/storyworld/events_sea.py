"""Event types: a ferry in distress, an outbreak of disease."""

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
    work,
)
from cdlm_lab.data.storyworld.shared_cast import event_type

# ruff: noqa: E501 -- a sentence with its wordings is easier to read on one line


FERRY: EventType = event_type(
    name="ferry",
    groups=("disaster",),
    nouns="sinking|accident|disaster",
    words={
        "job": ("raise the wreck", "pump off the oil", "search the sea bed"),
        "deed": ("saw the first flare", "swam to the raft with a rope", "woke the harbour master"),
        "source": ("the coastguard", "officials", "the port office", "rescuers"),
        "product": ("herring", "salt", "sailcloth", "pilots and fishermen"),
    },
    cast={
        "town": place("port|harbour town|fishing port"),
        "ship": building("ferry", "the @|the @ Star|the @ Queen"),
        "minister": person("shipping minister|transport minister"),
        "chief": person("coastguard commander|harbour master"),
        "captain": person("captain|master"),
        "island": place("island", "@ Island|the Isle of @"),
        "company": body("shipping line|ferry operator", "@ Lines|@ Ferries|@ Maritime"),
        "trawler": building("trawler", "the @ Grace|the @ Hope"),
        "passenger": person("passenger", definite=False),
        "hospital": building("hospital", "@ Hospital|the @ infirmary"),
        "expert": person("naval architect|retired pilot", definite=False),
    },
    numbers={
        "aboard": quantity(1013, 1987, "How many people were aboard?", "The ferry had # people aboard."),
        "saved": quantity(213, 899, "How many people were rescued?", "Rescuers saved # people."),
        "dead": quantity(12, 97, "How many people drowned?", "In the sinking # people drowned."),
        "depth": quantity(31, 298, "At how many metres does the wreck lie?", "The wreck lies # metres down."),
        "miles": quantity(
            11, 67, "How many miles from the port did it happen?", "It happened # miles from the port."
        ),
        "lorries": quantity(21, 98, "How many lorries were on the car deck?", "The car deck held # lorries."),
        "built": quantity(
            1961, 2003, "In which year was the ship built?", "The ship was built in #.", year=True
        ),
        "rafts": quantity(15, 58, "How many life rafts were there?", "The ship had # life rafts."),
        "oil": quantity(
            113, 987, "How many tonnes of oil are in the tanks?", "The tanks hold # tonnes of oil."
        ),
        "area": quantity(
            1013, 9876, "How many square miles were searched?", "The search covered # square miles."
        ),
    },
    texts={
        "what": (
            "{ship} <[sank|capsized|went down]~main> off {town}",
            "{ship}, a ferry, <[capsized|sank|rolled over]~main> on its way to {town}",
            "a storm <[overturned|sank]~main> {ship} off {town}",
        ),
        "after": ("the <[sinking|loss|capsizing]~main> of {ship} off {town}",),
        "headlines": (
            "Ferry [sinks|capsizes] in storm",
            "Hundreds [saved|plucked] from [sea|rafts] as ferry [sinks|goes down]",
            "[Night in the rafts|Cold water|The last crossing]",
            "Captain [questioned|heard] after ferry [sinking|disaster]",
            "[Bow door|Lorries] [blamed|in focus] in ferry inquiry",
            "Trawler crew [hailed|thanked] as ferry toll rises",
        ),
        "leads": (
            "[At least|No fewer than] {dead} people drowned and {saved} were rescued when {>what} on {$day}.",
            "{>what} on {$day} with {aboard} people aboard; {dead} people drowned.",
            "[Trawlers and helicopters|Lifeboats and helicopters] <[pulled|took]~rescue> {saved} people from the sea after {>what} [late |early |]on {$day}.",
            "{ship}, with {aboard} people aboard, <[sank|capsized]~main> {miles} miles [off|from] {town} on {$day}.",
            "The search for survivors was [called off|ended] on {$next}, a day after {>what} and {dead} people drowned.",
        ),
    },
    units=(
        unit(
            "toll",
            "core",
            "the {ev} cost {dead} people their lives; they drowned [below deck|in their cabins|within minutes].",
            "{chief} said {dead} people had drowned.",
            "the bodies of {dead} people who drowned were [brought ashore|laid in {hall}]",
        ),
        unit(
            "saved",
            "core",
            "rescuers <[saved|rescued]~rescue> {saved} people[, many of them without shoes|]",
            "in all, {saved} people were <[rescued|picked up]~rescue>, most by {trawler}",
            "the crew of {trawler} <[hauled in|rescued]~rescue> [many|most] of the {saved} people saved",
        ),
        unit(
            "aboard",
            "core",
            "there were {aboard} people aboard[, more than the list says|]",
            "{company} said {aboard} people had been aboard.",
            "with {aboard} people aboard, {ship} had left {island} at {$hour}",
        ),
        unit(
            "position",
            "core",
            "the wreck lies {depth} metres down, {miles} miles from the port",
            "sonar found the wreck {depth} metres down",
            "{chief} gave the place of the wreck: {depth} metres down, {miles} miles out.",
        ),
        unit(
            "lorries",
            "core",
            "the car deck held {lorries} lorries[ that were not chained|]",
            "on the car deck, {lorries} lorries [slid|shifted] to one side",
            "it is thought that {lorries} lorries [broke loose|shifted] on the car deck",
        ),
        unit(
            "ship",
            "core",
            "the ship, built in {built}, belongs to {company}",
            "{company} had bought the ship, built in {built}, [second-hand|two years ago]",
            "built in {built}, it had {rafts} life rafts[, of which nine did not open|]",
        ),
        unit(
            "chief",
            "core",
            '"[We hear them before we see them|At four degrees you have an hour|We searched by hand, wave by wave]," said {chief}.',
            "{chief.sub} [ordered|asked] [every boat|all fishing boats] out to sea.",
            '"[The sea gives nothing back today|There is no list one can trust]," {chief} said.',
        ),
        unit(
            "oil",
            "money",
            "the tanks hold {oil} tonnes of oil",
            "some of the {oil} tonnes of oil in the tanks [has reached|is drifting towards] {island}",
            "salvors hope to pump off {oil} tonnes of oil [before the next storm|in a week]",
        ),
        unit(
            "area",
            "official",
            "the search covered {area} square miles",
            "aircraft searched {area} square miles of [sea|grey water]",
            "in a search of {area} square miles, [not one raft|only an empty boat] was found",
        ),
        unit(
            "captain",
            "after",
            "{captain} was [questioned|heard] for [six|nine] hours",
            '"[I gave the order too late or too early, I do not know|The door light was green]," said {captain}.',
            "police [took|led] {captain} to {hotel}",
        ),
        unit(
            "passenger",
            "voice",
            '"[The floor became the wall|I held on to a child who was not mine|We sang so as not to sleep]," said {passenger}.',
            "{passenger.sub} [spent|sat] [five hours in a raft|in a blanket at {hall}].",
        ),
        unit(
            "trawler",
            "people",
            "the men of {trawler} [threw nets|let down nets] for people to climb",
            "{trawler} [turned back|came about] when the first flare rose [over|off] {island}",
        ),
        unit(
            "infirmary",
            "people",
            "{hospital} [treated|warmed] [survivors|children] with [blankets and tea|warm baths]",
            "most survivors were [taken|flown] to {hospital}",
        ),
        unit(
            "expert",
            "back",
            '"[A car deck without walls is a tray of water|Ferries sink through doors]," said {expert}.',
            "{expert.sub} [recalled|spoke of] [a like case|a sister ship lost] in {before}.",
        ),
    ),
    comparison=comparison(
        "in {PLACE}, {COUNT} life jackets were washed ashore",
        "beachcombers [found|counted] {COUNT} life jackets at {PLACE}",
        which="Where were more life jackets washed ashore, at {place_a.name} or at {place_b.name}?",
        whether="Were more life jackets washed ashore at {place_a.name} than at {place_b.name}?",
    ),
)

EPIDEMIC: EventType = event_type(
    name="epidemic",
    groups=("disaster",),
    nouns="outbreak|epidemic",
    words={
        "job": ("clean the water pipes", "test the wells", "drive the water lorries"),
        "deed": ("kept the first water sample", "reported the first case", "drew a map of the sick houses"),
        "source": ("the health office", "doctors", "officials", "the ministry"),
    },
    cast={
        "minister": person("health minister"),
        "chief": person("chief medical officer|head of the health office"),
        "doctor": person("ward doctor|paediatrician", definite=False),
        "nurse": person("head nurse|ward sister"),
        "hospital": building("hospital", "@ Hospital|the @ clinic"),
        "plant": building("waterworks", "the @ waterworks|the @ pumping station"),
        "fever": work("fever", "@ fever"),
        "company": body("water company|drug maker", "@ Water|@ Pharma|@ Group"),
        "institute": body("institute", "@ Institute"),
        "expert": person("epidemiologist|virologist", definite=False),
        "mother": person("seamstress|tram driver", definite=False),
    },
    numbers={
        "cases": quantity(1013, 9876, "How many people fell ill?", "In all # people fell ill."),
        "dead": quantity(12, 97, "How many people died of the fever?", "The fever killed # people."),
        "ward": quantity(103, 987, "How many patients are in hospital?", "The hospital has # patients."),
        "doses": quantity(10213, 98765, "How many doses were sent?", "The ministry sent # doses."),
        "samples": quantity(103, 987, "How many samples were tested?", "The laboratory tested # samples."),
        "wells": quantity(21, 98, "How many wells were closed?", "Officials closed # wells."),
        "bottles": quantity(
            10213,
            98765,
            "How many bottles of water are given out each day?",
            "Each day # bottles are given out.",
        ),
        "limit": quantity(21, 98, "By how many times was the limit exceeded?"),
        "price": quantity(113, 989),
        "beds": quantity(103, 487, "How many beds were set up?", "Soldiers set up # beds."),
    },
    texts={
        "what": (
            "{fever} <[broke out|spread]~main> in {town}",
            "an <[outbreak|epidemic]~main> of {fever} [struck|hit|reached] {town}",
            "doctors in {town} [confirmed|announced] an <[outbreak|epidemic]~main> of {fever}",
        ),
        "after": ("the <[outbreak|epidemic|spread]~main> of {fever} in {town}",),
        "headlines": (
            "[Fever|Sickness] [spreads|kills dozens]",
            "[Do not drink the water|Boil it twice|The street with no children]",
            "Wells closed as fever [spreads|toll rises]",
            "[Water company|Waterworks] [under suspicion|faces questions] over fever",
            "Hospital [full|runs out of beds] as [fever spreads|cases mount]",
            "Doctors [trace|hunt for] source of fever",
        ),
        "leads": (
            "[At least|No fewer than] {dead} people have died and {cases} have fallen ill since {>what}, the health office said on {$day}.",
            "{>what} [this week|within days], {minister} said on {$day}; {cases} people have fallen ill.",
            "[Soldiers set up|The army set up] {beds} beds on {$day} after {>what} and {hospital} ran out of room.",
            "Some {cases} people have fallen ill and {dead} have died since {>what}, [figures|a bulletin] showed on {$day}.",
            "Since {>what}, the number of people killed has [risen|climbed] to {dead}, doctors said on {$next}.",
        ),
    },
    units=(
        unit(
            "cases",
            "core",
            "so far {cases} people have <fallen ill~illness>",
            "{chief} counts {cases} people who <fell ill~illness>",
            "of {cases} people who <[fell ill|sickened]~illness>, [most|two in three] are children",
        ),
        unit(
            "toll",
            "core",
            "the fever has killed {dead} people[, mostly infants and the old|]",
            "{chief} said {dead} people had died.",
            "among the {dead} people who died [are|were] [two nurses|a priest and a teacher]",
        ),
        unit(
            "ward",
            "core",
            "{hospital} has {ward} patients[ on mattresses in the corridors|]",
            "in {hospital}, {nurse} [looks after|has the care of] {ward} patients",
            "there are {ward} patients in {hospital}",
        ),
        unit(
            "doses",
            "core",
            "the ministry [sent|released] {doses} doses of vaccine",
            "{minister} said {doses} doses of vaccine were [on the way|enough for now].",
            "a lorry with {doses} doses of vaccine [arrived|got through] [at dawn|by night]",
        ),
        unit(
            "samples",
            "core",
            "{institute} tested {samples} samples[ and found the germ in one in four|]",
            "of {samples} samples tested by {institute}, a quarter were positive",
            "the answer lay in {samples} samples tested at {institute}",
        ),
        unit(
            "wells",
            "core",
            "officials closed {wells} wells [fed by|near] {plant}",
            "because of {plant}, {wells} wells were closed",
            "{plant} was shut down and {wells} wells were closed",
        ),
        unit(
            "chief",
            "core",
            '"[Wash, boil, wait|It is in the water, we are sure of that|We are a week late, and that week has names]," said {chief}.',
            "{chief.sub} [told|asked] people to [stay at home|drink only from bottles].",
            '"[The curve will bend when the pipes are clean|We do not hide numbers]," {chief} said.',
        ),
        unit(
            "bottles",
            "people",
            "each day {bottles} bottles of water are given out [at {square}|from lorries]",
            "the army brings {bottles} bottles of water a day",
            "at {square}, {bottles} bottles of water [were gone by noon|are given out each day]",
        ),
        unit(
            "limit",
            "after",
            "the water exceeded the limit {limit} times",
            "at {plant}, the limit had been exceeded {limit} times",
            "{institute} found the limit exceeded {limit} times [in one pipe|below {plant}]",
        ),
        unit(
            "price",
            "money",
            "{company} had saved {price} million {$money} on [filters|pipes]",
            "new filters for {price} million {$money} had been [put off|struck out] by {company}",
            "{speaker} said filters for {price} million {$money} were [ordered|too dear].",
        ),
        unit(
            "beds",
            "official",
            "soldiers set up {beds} beds in {hall}",
            "{hall} was turned into a ward with {beds} beds",
            "in {hall}, {beds} beds [stand in rows|were set up overnight]",
        ),
        unit(
            "doctor",
            "people",
            '"[You can hear who will live|I sleep in the linen room]," said {doctor}.',
            "at {hospital}, {doctor} [fell asleep standing|has not been home for a week]",
        ),
        unit(
            "mother",
            "voice",
            '"[She asked for water, and I gave it to her|The school is quiet as snow]," said {mother}.',
            "{mother} [waited|sat] outside {hospital} with [a toy|a thermos]",
        ),
        unit(
            "expert",
            "back",
            '"[Such things follow the pipes|Every outbreak is a map]," said {expert}.',
            "{expert.sub} spoke of the fever of {before}.",
        ),
    ),
    comparison=comparison(
        "doctors visited {COUNT} homes in {PLACE}",
        "in {PLACE}, {COUNT} homes were visited by doctors",
        which="Where did doctors visit more homes, in {place_a.name} or in {place_b.name}?",
        whether="Did doctors visit more homes in {place_a.name} than in {place_b.name}?",
    ),
)

EVENTS: tuple[EventType, ...] = (FERRY, EPIDEMIC)
