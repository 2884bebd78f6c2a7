"""Event types: a fire in a factory, the fall of a bridge, an accident in a mine."""

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


FIRE: EventType = event_type(
    name="fire",
    groups=("disaster",),
    nouns="fire|blaze|inferno",
    words={
        "job": ("pull down the walls", "clear the ruins", "watch over the site"),
        "deed": ("broke the window of the night office", "called the fire brigade", "opened the locked gate"),
        "source": ("the fire brigade", "officials", "the factory inspectorate", "the police"),
        "product": ("cloth", "rope", "felt hats", "carpets", "matches"),
    },
    cast={
        "site": building("mill|works|factory|plant", "the @ mill|the @ works|the @ plant"),
        "chief": person("fire chief|fire officer"),
        "doctor": person("surgeon|burns specialist", definite=False),
        "hospital": building("hospital", "@ Hospital|the @ clinic"),
        "company": body("textile maker|paint maker|furniture maker", "@ Textiles|@ Group|@ Brothers"),
        "union": person("union leader|shop steward"),
        "expert": person("fire engineer|safety researcher", definite=False),
    },
    numbers={
        "dead": quantity(12, 97, "How many workers died in the fire?", "The fire killed # workers."),
        "injured": quantity(103, 487, "How many people were injured?", "In the fire # people were injured."),
        "crews": quantity(
            113, 876, "How many firefighters fought the flames?", "The flames were fought by # firefighters."
        ),
        "shift": quantity(1012, 3987, "How many people were on the shift?", "The shift counted # people."),
        "metres": quantity(2013, 9876, "How many square metres burned?", "Rooms of # square metres burned."),
        "exits": quantity(11, 38, "How many exits were locked?", "In the building # exits were locked."),
        "tonnes": quantity(
            113, 987, "How many tonnes of solvent were stored there?", "The store held # tonnes of solvent."
        ),
        "smoke": quantity(21, 98, "From how many kilometres could the smoke be seen?"),
        "orders": quantity(113, 989, "How many millions are the orders worth?"),
        "fines": quantity(
            10213, 98765, "How much had the company been fined?", "The company had been fined # {$money}."
        ),
    },
    texts={
        "what": (
            "a <[fire|blaze]~main> [tore through|swept through|gutted|destroyed] {site} in {town}",
            "{site} in {town} [was gutted by|burned down in|was destroyed in] a <[fire|blaze]~main>",
            "<[flames|fire]~main> [swept|raced] through {site}, the [largest|oldest] employer in {town}",
        ),
        "after": (
            "the <[fire|blaze|inferno]~main> at {site} in {town}",
            "the <[burning|destruction]~main> of {site} in {town}",
        ),
        "headlines": (
            "Workers die in [factory|night] blaze",
            "[Locked doors|Fire exits] [at centre of|in focus after] fatal fire",
            "Flames [devour|destroy] [old works|town's biggest employer]",
            "[Smoke over the valley|What the fire left|A shift that did not come home]",
            "Families [ask why doors were locked|wait at factory gate]",
            "Toll of factory fire [rises|climbs]",
        ),
        "leads": (
            "A <[fire|blaze]~main> [tore|raced] through {site} in {town} on {$day}, killing {dead} workers and injuring {injured} others.",
            "[At least|No fewer than] {dead} workers [died|lost their lives|were killed] on {$day} when {>what}.",
            "{>what} on {$day}; {dead} workers [did not get out|died] and {injured} people were injured.",
            "It took {crews} firefighters [all night|until dawn|eleven hours] to [put out|master] the <[fire|flames]~main> that [gutted|destroyed] {site} in {town} on {$day}.",
            "{chief} [called off|ended] the search of {site} on {$next}, a day after a <blaze~main> [there |]killed {dead} workers.",
        ),
    },
    units=(
        unit(
            "toll",
            "core",
            "the <fire~main> [killed|claimed the lives of] {dead} workers",
            "firemen carried out {dead} dead workers[, covered with blankets|, one after another|]",
            "{chief} put the number of dead workers at {dead}",
            "[most|nearly all] of the {dead} dead workers were [women|night staff|young]",
        ),
        unit(
            "injured",
            "core",
            "[burns and smoke|smoke] sent {injured} injured people to {hospital}",
            "{hospital} [took in|admitted|treated] {injured} injured people",
            "of {injured} people injured, [most|many] were [taken to|treated at] {hospital}",
        ),
        unit(
            "crews",
            "core",
            "the {ev} was fought by {crews} firefighters[ with ladders and foam|]",
            "{chief} had {crews} firefighters [at the scene|on the roof]",
            "[from all over|across] {region}, {crews} firefighters were [called in|sent]",
        ),
        unit(
            "shift",
            "core",
            "a shift of {shift} people was [at work|inside] when [the alarm went|it began]",
            "the shift of {shift} people had [just|barely] begun",
            "{union} said a shift of {shift} people had [only one way out|never had a drill].",
        ),
        unit(
            "area",
            "core",
            "halls of {metres} square metres were [lost|burned out]",
            "the <flames~main> [spread over|ran across] {metres} square metres [in minutes|before anyone had seen them]",
            "some {metres} square metres of {site} [are ash|have no roof]",
        ),
        unit(
            "exits",
            "core",
            "[inspectors|firemen] found {exits} exits locked[, some with chains|]",
            "{union} [said|told reporters] that {exits} exits had been locked",
            "the doors of {exits} exits were [locked|chained|blocked]",
        ),
        unit(
            "chief",
            "core",
            '"[We heard them and could not reach them|The heat bent our ladders|Give us open doors and we save lives]," said {chief}.',
            "{chief.sub} [said|thought] [a spark from a welder|a cable|a heater] was [to blame|the likely cause].",
            '"[Nobody should die at a machine|I have fought fires for thirty years, none like this]," {chief} said.',
        ),
        unit(
            "solvent",
            "back",
            "a store beside the hall held {tonnes} tonnes of solvent",
            "{expert} said {tonnes} tonnes of solvent [had fed the flames|should never have stood there].",
            "[permits allowed|the permit spoke of] [half|a third] of the {tonnes} tonnes of solvent stored there",
        ),
        unit(
            "smoke",
            "colour",
            "the smoke could be seen {smoke} kilometres away[ in {other}|]",
            "even in {other}, {smoke} kilometres away, people [smelled the smoke|closed their windows]",
            "a column of smoke [stood over|hung above] {road}, visible from {smoke} kilometres away",
        ),
        unit(
            "orders",
            "money",
            "{company} has orders worth {orders} million {$money}[ that it cannot fill|]",
            "orders worth {orders} million {$money} [will go elsewhere|are in doubt], {speaker} said.",
            "buyers had placed orders worth {orders} million {$money} with {company}",
        ),
        unit(
            "fines",
            "back",
            "{company} had been fined {fines} {$money} in {before} [over blocked stairs|for missing alarms]",
            "in {before} a court fined {company} {fines} {$money}",
            "a fine of {fines} {$money}, imposed in {before}, was [paid without comment|never collected]",
        ),
        unit(
            "doctor",
            "people",
            '"[We need skin and blood, in that order|The next three days decide]," said {doctor} at {hospital}.',
            "at {hospital}, {doctor} [operated|worked] [through the night|for nineteen hours]",
            "at {hospital}, {doctor} [asked for blood donors|spoke of the worst night in memory]",
        ),
        unit(
            "union",
            "voice",
            '"[They locked them in to save on guards|We wrote to them, twice|We shall read out every name]," said {union}.',
            "{union.sub} [called for|demanded] [a day of mourning|arrests|new inspectors].",
        ),
        unit(
            "expert",
            "back",
            '"[A locked exit is a decision|Fires do not kill, doors do|It is always the same list]," said {expert}.',
            "{expert.sub} [had inspected|knew] the building and [found it wanting|called it a trap].",
        ),
    ),
    comparison=comparison(
        "[soot|ash] [ruined|fell on] {COUNT} gardens in {PLACE}",
        "in {PLACE}, {COUNT} gardens were [covered with ash|black with soot]",
        which="Where did ash ruin more gardens, in {place_a.name} or in {place_b.name}?",
        whether="Did ash ruin more gardens in {place_a.name} than in {place_b.name}?",
    ),
)

BRIDGE: EventType = event_type(
    name="bridge",
    groups=("disaster",),
    nouns="collapse|accident|disaster",
    words={
        "job": ("lift the girders out of the water", "put up a temporary crossing", "cut up the wreck"),
        "deed": ("stopped the school bus", "waved down the traffic with a coat", "heard the cables snap"),
        "source": ("officials", "the roads office", "the police", "rescuers"),
    },
    cast={
        "site": building("bridge", "the @ Bridge|the @ viaduct"),
        "river": place("river", "the @ river"),
        "chief": person("police chief|rescue chief"),
        "minister": person("transport minister"),
        "company": body("motorway operator|builder", "@ Infrastructure|@ Construction|@ Roads"),
        "hospital": building("hospital", "@ Hospital|the @ clinic"),
        "driver": person("lorry driver|postman|sales representative", definite=False),
        "inspector": person("bridge inspector|chief inspector"),
        "expert": person("structural engineer|metallurgist", definite=False),
    },
    numbers={
        "dead": quantity(
            12,
            97,
            "How many people were killed when the bridge fell?",
            "The fall of the bridge killed # people.",
        ),
        "injured": quantity(103, 487, "How many people were injured?", "Doctors treated # injured people."),
        "vehicles": quantity(21, 98, "How many vehicles fell?", "From the bridge # vehicles fell."),
        "length": quantity(103, 987, "How many metres of the bridge fell?", "Of the bridge # metres fell."),
        "height": quantity(
            31, 98, "From how many metres did the roadway fall?", "The roadway fell # metres."
        ),
        "traffic": quantity(
            10213,
            98765,
            "How many vehicles used the bridge each day?",
            "Each day # vehicles crossed the bridge.",
        ),
        "built": quantity(
            1921, 1998, "In which year was the bridge opened?", "The bridge was opened in #.", year=True
        ),
        "cables": quantity(
            113, 987, "How many cables were corroded?", "Inspectors had found # corroded cables."
        ),
        "repair": quantity(113, 989, "How many millions would the repair have cost?"),
        "divers": quantity(
            21, 98, "How many divers searched the river?", "The river was searched by # divers."
        ),
    },
    texts={
        "what": (
            "{site} <[collapsed|gave way|fell]~main> near {town}",
            "part of {site} <[broke off|came down|plunged into the water]~main> near {town}",
            "{site} in {town} <[collapsed|crashed down|gave way]~main> without warning",
        ),
        "after": ("the <[collapse|fall]~main> of {site} near {town}",),
        "headlines": (
            "Bridge [collapse|fall] kills dozens",
            "[Cars plunge|Lorries fall] as bridge [gives way|collapses]",
            "[Who knew about the cables?|The gap in the road|Before the fall]",
            "Bridge inspectors [had warned|under fire|to face questions]",
            "Divers [search river|find more dead] after bridge collapse",
            "Operator of fallen bridge [faces|expects] [claims|questions]",
        ),
        "leads": (
            "[At least|No fewer than] {dead} people were killed and {injured} injured when {>what} on {$day}.",
            "{>what} on {$day}, [sending|taking] {vehicles} vehicles [down with it|into the water] and killing {dead} people.",
            "[Divers|Rescuers] searched {river} on {$day} after {>what} and {vehicles} vehicles fell [{height} metres|into the gorge].",
            "Some {length} metres of {site} near {town} <[collapsed|came down]~main> on {$day}[ in heavy rain| at the height of the traffic|]; {dead} people were killed.",
            "The number of people killed in {>after} [rose|climbed] to {dead} on {$next}.",
        ),
    },
    units=(
        unit(
            "toll",
            "core",
            "the {ev} killed {dead} people[, among them a family of five|, most of them in one coach|]",
            "{chief} said {dead} people had been killed.",
            "[rescuers|divers] brought up the bodies of {dead} people [killed|who had been killed]",
        ),
        unit(
            "injured",
            "core",
            "{hospital} [admitted|took in] {injured} injured people",
            "helicopters flew [some of the|many of the] {injured} injured to {hospital}",
            "the injured, {injured} in all, [were taken|were brought] to {hospital}",
        ),
        unit(
            "vehicles",
            "core",
            "in all, {vehicles} vehicles [fell|went down][, a coach among them|, eleven of them lorries|]",
            "cranes [lifted|pulled] {vehicles} vehicles from {river}",
            "the wrecks of {vehicles} vehicles lay in {river}",
        ),
        unit(
            "span",
            "core",
            "the middle part, {length} metres long, <[dropped|broke away]~main>",
            "a stretch of {length} metres [is missing|hung in the air, then fell]",
            "{inspector} [measured|spoke of] a gap of {length} metres",
        ),
        unit(
            "height",
            "core",
            "the roadway fell {height} metres[ onto the rocks| into {river}|]",
            "at that point {site} [stands|stood] {height} metres above {river}",
            "the fall of {height} metres [left few chances|was broken by the water]",
        ),
        unit(
            "built",
            "core",
            "{site}, opened in {built}, [carried|was crossed by] {traffic} vehicles a day",
            "opened in {built} and built for [far fewer|a third of them], it carried {traffic} vehicles a day",
            "the bridge dates from {built}; {traffic} vehicles a day used it.",
        ),
        unit(
            "chief",
            "core",
            '"[We heard knocking from the cars, then nothing|We are looking for the living|Every hour the water is colder]," said {chief}.',
            "{chief.sub} [asked|begged] drivers to [stay away|leave the road to the ambulances].",
        ),
        unit(
            "cables",
            "back",
            "{inspector} had [listed|found] {cables} corroded cables in {before}",
            "a survey of {before} [counted|showed] {cables} corroded cables",
            "{expert} said {cables} corroded cables were more than enough to bring it down.",
        ),
        unit(
            "repair",
            "money",
            "{company} had put off a repair priced at {repair} million {$money}",
            "a repair at {repair} million {$money} was [planned|announced] for [next spring|the year after next]",
            "{speaker} [confirmed|admitted] that a repair at {repair} million {$money} had been postponed",
        ),
        unit(
            "divers",
            "official",
            "a team of {divers} divers [searched|combed] {river}",
            "in {river}, {divers} divers [worked by touch|could see no further than their hands]",
            "the navy sent {divers} divers[ from {other}|]",
        ),
        unit(
            "driver",
            "voice",
            '"[I braked, and the road was gone|The lorry in front simply vanished|I got out and ran back, waving]," said {driver}.',
            '{driver} [stopped|came to a halt] [two metres|a few steps] from the edge. "[I still hear it|I shall walk from now on]," {driver.he} said.',
        ),
        unit(
            "inspector",
            "after",
            "{inspector} [told|said to] {minister} that [the reports had been changed|nobody had asked]",
            '"[I signed what I saw|Read my letters]," said {inspector}.',
        ),
        unit(
            "expert",
            "back",
            '"[Steel gives notice, one has to listen|Salt and time did this|It was a question of when]," said {expert}.',
            "{expert.sub} [compared it with|recalled] the [fall|case] of a bridge at {other} in {before}.",
        ),
    ),
    comparison=comparison(
        "each day {COUNT} lorries now [roll|thunder] through {PLACE}",
        "in {PLACE}, people count {COUNT} lorries a day",
        which="Which place now sees more lorries a day, {place_a.name} or {place_b.name}?",
        whether="Does {place_a.name} now see more lorries a day than {place_b.name}?",
    ),
)

MINE: EventType = event_type(
    name="mine",
    groups=("disaster",),
    nouns="explosion|blast|accident",
    words={
        "job": ("drill a second shaft", "pump the water out of the pit", "seal the old tunnels"),
        "deed": ("smelled the gas", "rang the pit bell", "went back down for the injured"),
        "source": ("officials", "the mines office", "the rescue team", "the police"),
        "product": ("coal", "zinc", "salt", "copper"),
    },
    cast={
        "site": building("mine|pit|colliery", "the @ mine|the @ colliery"),
        "minister": person("energy minister|labour minister"),
        "chief": person("mine rescue leader|pit manager"),
        "company": body("mine owner|mining company", "@ Mining|@ Minerals|@ Coal"),
        "survivor": person("hewer|shot-firer|pit electrician", definite=False),
        "union": person("miners' leader|union secretary"),
        "wife": person("miner's wife|canteen cook", definite=False),
        "expert": person("mining engineer|gas specialist", definite=False),
        "hospital": building("hospital", "the @ miners' hospital|@ Hospital"),
    },
    numbers={
        "trapped": quantity(21, 98, "How many miners were trapped?", "Underground # miners were trapped."),
        "dead": quantity(11, 97, "How many miners were killed?", "The blast killed # miners."),
        "depth": quantity(
            413, 1987, "At how many metres below ground did it happen?", "It happened # metres below ground."
        ),
        "rescued": quantity(
            103, 487, "How many miners were brought up alive?", "Rescuers brought up # miners alive."
        ),
        "hole": quantity(
            31,
            98,
            "How many centimetres wide is the rescue shaft?",
            "The rescue shaft is # centimetres wide.",
        ),
        "gas": quantity(11, 98),
        "output": quantity(
            1013,
            9876,
            "How many tonnes does the mine bring up each day?",
            "The mine brings up # tonnes a day.",
        ),
        "staff": quantity(1013, 4987, "How many people work at the mine?", "At the mine # people work."),
        "breaches": quantity(
            103, 987, "How many breaches had inspectors noted?", "Inspectors had noted # breaches."
        ),
        "opened": quantity(
            1851, 1988, "In which year was the mine opened?", "The mine was opened in #.", year=True
        ),
    },
    texts={
        "what": (
            "an <[explosion|explosion of gas]~main> [ripped through|shook|tore through] {site} near {town}",
            "gas <[exploded|blew up]~main> [in|deep in] {site} near {town}",
            "a <[blast|gas blast]~main> [cut off|trapped] [a whole shift|dozens of miners] in {site} near {town}",
        ),
        "after": ("the <[explosion|blast|accident]~main> at {site} near {town}",),
        "headlines": (
            "Miners [trapped|cut off] after [pit blast|gas explosion]",
            "[Knocking heard|Signs of life] in [wrecked|shattered] mine",
            "Wives wait at pit gate",
            "[Gas|Firedamp] blast kills miners",
            "Mine owner [faces|braces for] questions over gas",
            "[The lamp room was empty|The night shift|Below the village]",
        ),
        "leads": (
            "{>what} on {$day}, killing {dead} miners and trapping {trapped} others [{depth} metres below ground|underground].",
            "[At least|No fewer than] {dead} miners were killed and {trapped} trapped on {$day} when {>what}.",
            "Rescuers [drilled|dug] [through the night|by the light of lamps] to reach {trapped} trapped miners [after|hours after] {>what} on {$day}.",
            "[Hope faded|Hope was fading] on {$next} for {trapped} miners trapped {depth} metres below ground after {>what}.",
            "Of the shift, {rescued} miners came up alive and {dead} were killed [when|after] {>what} on {$day}.",
        ),
    },
    units=(
        unit(
            "trapped",
            "core",
            "there was [no word from|no contact with] {trapped} trapped miners",
            "{chief} said {trapped} miners were [still |]trapped.",
            "the trapped miners, {trapped} in all, [have air for two days|had food for one shift]",
        ),
        unit(
            "toll",
            "core",
            "the <blast~main> killed {dead} miners[ at once|, the youngest of them nineteen|]",
            "the bodies of {dead} miners killed [by the blast|in the tunnel] were [brought up|laid out in the lamp room]",
            "[the company|{company}] [confirmed|gave out] that {dead} miners had been killed",
        ),
        unit(
            "rescued",
            "core",
            "some {rescued} miners were <[rescued|brought up alive]~rescue>, [black with dust|blinking in the light]",
            "the <rescue~rescue> of {rescued} miners [took nine hours|ended at dawn]",
            "ambulances took many of the {rescued} rescued miners to {hospital}",
        ),
        unit(
            "depth",
            "core",
            "the gas <[went off|ignited]~main> {depth} metres below ground",
            "the seam [runs|lies] {depth} metres below ground",
            "at {depth} metres below ground the heat [is forty degrees|stops every drill]",
        ),
        unit(
            "shaft",
            "core",
            "a shaft {hole} centimetres wide is being <drilled~drilling>",
            "engineers are <drilling~drilling> a shaft {hole} centimetres wide",
            "through a shaft {hole} centimetres wide [they send down water|a camera was lowered]",
        ),
        unit(
            "mine",
            "core",
            "{site}, opened in {opened}, belongs to {company}",
            "{company} owns the mine, which opened in {opened}",
            "the mine was opened in {opened} and is owned by {company}",
        ),
        unit(
            "chief",
            "core",
            '"[We heard three knocks, then four|As long as we hear them we dig|The gas decides, not we]," said {chief}.',
            "{chief.sub} [promised|swore] to [go on|bring up every man].",
            "{chief.sub} [asked for|wanted] [silence at the shaft|more pumps|fresh crews].",
        ),
        unit(
            "output",
            "money",
            "the mine brings up {output} tonnes a day",
            "an output of {output} tonnes a day is [lost|missing]",
            "with {output} tonnes a day, it [supplies|feeds] [half the power stations|the smelter] of {region}",
        ),
        unit(
            "workforce",
            "back",
            "{company} employs {staff} people at the mine",
            "of the {staff} people employed at the mine, [most|nearly all] live in {town}",
            "the mine employs {staff} people[, a third of them from {other}|]",
        ),
        unit(
            "breaches",
            "after",
            "inspectors had noted {breaches} breaches since {before}",
            "a list of {breaches} breaches [goes back to|starts in] {before}",
            "{union} [showed|held up] a list of {breaches} breaches",
        ),
        unit(
            "gas",
            "back",
            "the gas alarm had sounded {gas} times [that month|in one week]",
            "{survivor} said the gas alarm had sounded {gas} times and [was switched off|had been ignored].",
            "according to {expert}, a gas alarm that sounds {gas} times [is not faulty|means get out]",
        ),
        unit(
            "survivor",
            "voice",
            '"[There was a light like noon, then nothing|I crawled along the rail|I counted those in front of me]," said {survivor}.',
            "{survivor.sub} [lay|was] in {hospital} [with burned hands|and asked for news of the others].",
        ),
        unit(
            "wife",
            "voice",
            '"[He said he would be home for soup|They will not look us in the eye]," said {wife}.',
            "{wife} [waited|stood] at the gate [with a thermos|since the siren]",
        ),
        unit(
            "union",
            "voice",
            '"[Coal is cheap because we are|We asked for fans and got posters]," said {union}.',
            "{union.sub} [called|announced] a [strike|silent march].",
        ),
        unit(
            "expert",
            "back",
            '"[Gas gathers where air is saved|It takes one spark and one bad fan]," said {expert}.',
            "{expert.sub} [had measured|knew of] gas [there|in the same seam] in {before}.",
        ),
    ),
    comparison=comparison(
        "{PLACE} is home to {COUNT} mining families",
        "in {PLACE}, {COUNT} mining families [live|have kept their curtains drawn]",
        which="Where do more mining families live, in {place_a.name} or in {place_b.name}?",
        whether="Do more mining families live in {place_a.name} than in {place_b.name}?",
    ),
)

EVENTS: tuple[EventType, ...] = (FIRE, BRIDGE, MINE)
