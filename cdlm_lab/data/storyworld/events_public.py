"""Event types: a strike in a shipyard, a verdict that is quashed, an election that is counted again."""

from __future__ import annotations

from cdlm_lab.data.storyworld.grammar import (
    EventType,
    body,
    building,
    comparison,
    person,
    quantity,
    unit,
)
from cdlm_lab.data.storyworld.shared_cast import event_type

# ruff: noqa: E501 -- a sentence with its wordings is easier to read on one line


STRIKE: EventType = event_type(
    name="strike",
    groups=("conflict",),
    nouns="strike|walkout|stoppage|dispute",
    words={
        "job": ("guard the gates", "carry the parcels", "repair the broken fence"),
        "deed": ("was first to put down tools", "wrote the leaflet that started it all", "sounded the siren"),
        "source": ("the union", "the company", "strikers", "the labour office"),
    },
    cast={
        "site": building("shipyard|car plant|steelworks", "the @ shipyard|the @ plant|the @ steelworks"),
        "minister": person("labour minister|economy minister"),
        "company": body("shipbuilder|steelmaker|carmaker", "@ Group|@ Industries|@ Motors"),
        "union": body("union", "@ Union|@ Workers' League"),
        "leader": person("union leader|strike leader"),
        "welder": person("welder|crane driver|fitter", definite=False),
        "mediator": person("mediator"),
        "customer": body("shipping line|customer", "@ Lines|@ Transport"),
        "expert": person("labour historian|economist", definite=False),
    },
    numbers={
        "strikers": quantity(
            1013, 9876, "How many workers walked out?", "The strike was joined by # workers."
        ),
        "rise": quantity(
            413, 987, "What monthly rise do the strikers want?", "The strikers want # {$money} more a month."
        ),
        "offer": quantity(
            103,
            398,
            "What monthly rise did the company offer?",
            "The company offered # {$money} more a month.",
        ),
        "cuts": quantity(
            213, 1987, "How many jobs does the company want to cut?", "The company wants to cut # jobs."
        ),
        "ballot": quantity(
            71, 98, "What percentage voted for the strike?", "The ballot was # per cent in favour."
        ),
        "cost": quantity(11, 89, "How many millions does a day of the strike cost?"),
        "hours": quantity(21, 69, "How many hours did the talks last?", "The talks lasted # hours."),
        "late": quantity(113, 987, "How many machines will be late?"),
        "arrests": quantity(21, 198, "How many people were arrested?", "The police arrested # people."),
        "pay": quantity(
            1013,
            3987,
            "How much does a skilled worker earn a month?",
            "A skilled worker earns # {$money} a month.",
        ),
        "chest": quantity(11, 97, "How many millions are in the strike fund?"),
    },
    texts={
        "what": (
            "workers at {site} in {town} <[walked out|downed tools|went on strike]~main>",
            "a <[strike|walkout]~main> [shut down|paralysed|closed] {site} in {town}",
            "the gates of {site} in {town} were shut by a <[strike|walkout]~main>",
        ),
        "after": ("the <[strike|walkout|stoppage]~main> at {site} in {town}",),
        "headlines": (
            "Thousands walk out over [pay|job cuts]",
            "[Cranes stand still|Gates shut] as [strike begins|talks fail]",
            "Talks [collapse|break down] in [pay dispute|strike]",
            "[Soup and brass at the gate|A town without a siren|Who blinks first?]",
            "Company [loses millions|counts cost] in strike",
            "Mediator [called in|sought] as strike [spreads|hardens]",
        ),
        "leads": (
            "Some {strikers} workers <[walked out|downed tools]~main> at {site} in {town} on {$day}, demanding {rise} {$money} more a month.",
            "{>what} on {$day} after talks over {cuts} job cuts [failed|broke down].",
            "{>what} on {$day}, and {strikers} workers [stood|gathered] at the gates.",
            "Talks between {company} and {union} [collapsed|broke down] on {$day}, and hours later {>what}.",
            "{leader} [said|declared] on {$next} that {strikers} workers would stay out until {company} [gave way|dropped its plan], a day after {>what}.",
        ),
    },
    units=(
        unit(
            "strikers",
            "core",
            "{union} [put|gave] the number of workers on <strike~main> at {strikers}",
            "[in all|by noon], {strikers} workers had <[stopped work|joined]~main>",
            "only the fire watch stayed when {strikers} workers <left~main>",
        ),
        unit(
            "rise",
            "core",
            "{union} [demands|wants] {rise} {$money} more a month",
            "the workers want {rise} {$money} more a month; {company} [offered|put forward] {offer} {$money}.",
            "an offer of {offer} {$money} more a month was [turned down|booed]",
        ),
        unit(
            "cuts",
            "core",
            "{company} [plans|wants] to cut {cuts} jobs",
            "the plan to cut {cuts} jobs became known [in a letter|through a leaked memo]",
            "{speaker} [confirmed|repeated] that {cuts} jobs must be cut",
        ),
        unit(
            "ballot",
            "core",
            "in a ballot, {ballot} per cent [voted for|backed] the {ev}",
            "{leader} called a ballot of {ballot} per cent [an order|a clear answer]",
            "the ballot [ended with|showed] {ballot} per cent in favour",
        ),
        unit(
            "cost",
            "core",
            "each day of the {ev} costs {company} {cost} million {$money}",
            "{speaker} put the loss at {cost} million {$money} a day",
            "{company} [loses|is losing] {cost} million {$money} a day",
        ),
        unit(
            "talks",
            "core",
            "the talks [lasted|went on for] {hours} hours[ and ended in silence|]",
            "after {hours} hours of talks, {mediator} [closed|shut] the folder",
            "{mediator} had kept both sides at the table for {hours} hours",
        ),
        unit(
            "leader",
            "core",
            '"[We built this place, we can wait|Not one job, not one crown less|They have lawyers, we have time]," said {leader}.',
            "{leader.sub} [accused {company} of bad faith|told the crowd to keep calm|climbed on a lorry to speak].",
            '"[Ask their wives what the offer is worth|We did not want this]," {leader} said.',
        ),
        unit(
            "late",
            "money",
            "{customer} is waiting for {late} machines",
            "the delivery of {late} machines to {customer} is late",
            "for {customer}, {late} machines will [come late|not arrive in time]",
        ),
        unit(
            "arrests",
            "official",
            "the police arrested {arrests} people [at the north gate|after stones were thrown]",
            "at {road}, {arrests} people were arrested",
            "{lawyer} [asked for|demanded] the release of {arrests} people arrested [at the gates|in the night]",
        ),
        unit(
            "pay",
            "back",
            "a skilled worker there earns {pay} {$money} a month",
            "{welder} [earns|takes home] {pay} {$money} a month",
            "with {pay} {$money} a month, {expert} said, a skilled worker [cannot rent a flat|earns less than in {before}].",
        ),
        unit(
            "chest",
            "after",
            "{union} has {chest} million {$money} in its strike fund",
            "a strike fund of {chest} million {$money} [will last two months|lets {union} wait]",
            "{leader} said the strike fund, {chest} million {$money}, was [untouched|full].",
        ),
        unit(
            "welder",
            "voice",
            '"[My father struck here, and his|I would rather weld than stand here|We have bread and a drum]," said {welder}.',
            "{welder} [warmed|held] {welder.his} hands over a burning barrel",
        ),
        unit(
            "mediator",
            "after",
            "{mediator.sub} [invited|called] both sides to {hotel}",
            '"[They are closer than they think|I have seen worse, and it ended well]," said {mediator}.',
        ),
        unit(
            "expert",
            "back",
            '"[A yard is a town with a fence|Such fights end when both are tired]," said {expert}.',
            "{expert} [recalled|pointed to] the strike of {before}, which [lasted a winter|nobody won]",
        ),
    ),
    comparison=comparison(
        "a march of {COUNT} strikers set out from {PLACE}",
        "from {PLACE}, {COUNT} strikers came on foot",
        which="Where did more strikers set out, in {place_a.name} or in {place_b.name}?",
        whether="Did more strikers come from {place_a.name} than from {place_b.name}?",
    ),
)

COURT: EventType = event_type(
    name="court",
    groups=("conflict",),
    nouns="ruling|judgment|decision",
    words={
        "job": ("copy the old files", "guard the courthouse", "test the old samples"),
        "deed": ("found the lost tape", "changed the first statement", "kept the torn ticket"),
        "source": ("the court", "prosecutors", "the defence", "court officials"),
    },
    cast={
        "court": building("courthouse", "the @ courthouse|the @ palace of justice"),
        "minister": person("justice minister"),
        "prisoner": person("watchmaker|forester|ferryman|beekeeper", definite=False),
        "victim": person("jeweller|innkeeper|landowner", definite=False),
        "presiding": person("presiding judge"),
        "prosecutor": person("chief prosecutor"),
        "defender": person("defence lawyer"),
        "daughter": person("prisoner's daughter"),
        "detective": person("former detective", definite=False),
        "jail": building("prison", "@ prison|the @ fortress"),
        "company": body("private laboratory|security company", "@ Laboratories|@ Security"),
        "expert": person("professor of law|forensic chemist", definite=False),
    },
    numbers={
        "days": quantity(
            1013, 9876, "How many days did the prisoner spend in jail?", "The prisoner spent # days in jail."
        ),
        "award": quantity(
            10213,
            98765,
            "How much compensation was awarded?",
            "The court awarded # {$money} in compensation.",
        ),
        "ruling": quantity(103, 487, "How many pages does the judgment have?", "The judgment has # pages."),
        "crime": quantity(
            1971, 2009, "In which year was the murder?", "The murder was committed in #.", year=True
        ),
        "witnesses": quantity(21, 98, "How many witnesses were heard?", "The court heard # witnesses."),
        "case": quantity(10213, 98765, "Which number does the case have?", "The case bears the number #."),
        "errors": quantity(11, 38, "How many errors did the judge find?", "The judge found # errors."),
        "letters": quantity(
            213, 987, "How many letters did the prisoner write?", "From jail came # letters."
        ),
        "reopened": quantity(
            103, 987, "How many other cases are to be reopened?", "Prosecutors will reopen # cases."
        ),
        "sittings": quantity(
            21, 98, "How many sittings did the hearing take?", "The hearing took # sittings."
        ),
    },
    texts={
        "what": (
            "a court in {town} <[quashed|overturned|set aside]~main> the murder conviction of {prisoner}",
            "judges in {town} <[freed|cleared]~main> {prisoner} of murder",
            "{prisoner} was <[cleared|acquitted]~main> of murder by a court in {town}",
        ),
        "after": ("the <[acquittal|release]~main> of {prisoner} by a court in {town}",),
        "headlines": (
            "Court [quashes|overturns] murder conviction",
            "[Free after thousands of days|Cleared at last|The door opens]",
            "Judge [lists errors|blames police] in old murder case",
            "Prosecutors [under pressure|to review cases] after acquittal",
            "[How a tape undid a verdict|A verdict undone|What the court got wrong]",
            "Minister [apologises|promises review] after [ruling|acquittal]",
        ),
        "leads": (
            "{>what} on {$day}, after {days} days in jail[ for a crime someone else committed|].",
            "After {days} days in jail, {prisoner} <[walked free|left court a free person]~main> in {town} on {$day}.",
            "{presiding} [took|needed] [two hours|a morning] on {$day} to read a judgment of {ruling} pages, at the end of which {>what}.",
            "On {$day} {>what}; the state must pay {award} {$money} in compensation.",
            "{minister} [apologised|bowed before cameras] on {$next}, a day after {>what}.",
        ),
    },
    units=(
        unit(
            "days",
            "core",
            "{prisoner.sub} had spent {days} days in {jail}",
            "the {days} days in {jail} ended on a {$day}",
            "{jail} [held|kept] {prisoner} for {days} days",
        ),
        unit(
            "award",
            "core",
            "the state must pay {award} {$money} in compensation",
            "{presiding} awarded {award} {$money} in compensation",
            "compensation of {award} {$money} was [granted|set][, less than the defence had asked|]",
        ),
        unit(
            "ruling",
            "core",
            "the <[ruling|judgment]~main> of {ruling} pages [finds|lists] {errors} errors in the first trial",
            "on {ruling} pages, {presiding} [named|counted] {errors} errors",
            "a judgment of {ruling} pages speaks of {errors} errors",
        ),
        unit(
            "crime",
            "core",
            "{victim} was found <[dead|murdered]~murder> in {crime}",
            "the <murder~murder> of {victim} in {crime} [shook|divided] {region}",
            "in {crime}, {victim} had been <killed~murder>",
        ),
        unit(
            "witnesses",
            "core",
            "the court heard {witnesses} witnesses in {sittings} sittings",
            "in {sittings} sittings, {witnesses} witnesses were heard",
            "[of|among] {witnesses} witnesses, [three had lied|two took back what they had said]",
        ),
        unit(
            "case",
            "core",
            "the case, number {case}, [was closed|is closed]",
            "case number {case} [lay|had lain] in the cellar of {court}",
            "in {court}, the bailiff called case number {case}",
        ),
        unit(
            "presiding",
            "core",
            '"[The court cannot give back what it took|This verdict should never have been spoken|Doubt was there from the first day]," said {presiding}.',
            "{presiding.sub} [blamed|pointed to] [the police|a laboratory|haste].",
            '"[We have read every line again|Justice came late]," {presiding} said.',
        ),
        unit(
            "letters",
            "people",
            "from {jail}, {prisoner} wrote {letters} letters",
            "{daughter} [kept|has kept] {letters} letters from {jail}",
            "[a box|a suitcase] holds {letters} letters, written [in pencil|by night] in {jail}",
        ),
        unit(
            "reopened",
            "after",
            "prosecutors [will reopen|must look again at] {reopened} cases",
            "{prosecutor} [announced|said] that {reopened} cases would be reopened",
            "for {expert}, {reopened} cases need to be [reopened|read again]",
        ),
        unit(
            "detective",
            "back",
            "{detective} had led the inquiry and [did not appear|is ill]",
            '"[I did what one did then|I would sign it again]," said {detective}.',
        ),
        unit(
            "daughter",
            "voice",
            '"[I was six when they came|I want to hear someone breathe in the next room|We shall start with breakfast]," said {daughter}.',
            "{daughter} [wept|sat still] [when|as] the sentence was read",
        ),
        unit(
            "defender",
            "voice",
            '"[It was never a case, it was a story|One tape, that was all it took|The state is a bad loser]," said {defender}.',
            "{defender.sub} [asked|wants] to see [every file|those responsible in court].",
        ),
        unit(
            "prosecutor",
            "after",
            '"[We respect the court|There will be no appeal]," said {prosecutor}.',
            "{prosecutor} [refused|declined] to [apologise|say more]",
        ),
        unit(
            "laboratory",
            "money",
            "{company} had [mixed up|spoiled] the samples",
            "{speaker} [denied|regretted] [any error|the mix-up]",
            "the state [ended|cancelled] its contract with {company}",
        ),
    ),
    comparison=comparison(
        "in {PLACE}, {COUNT} people had signed for a new trial",
        "{PLACE} brought together {COUNT} names for a new trial",
        which="Where did more people sign for a new trial, in {place_a.name} or in {place_b.name}?",
        whether="Did more people sign for a new trial in {place_a.name} than in {place_b.name}?",
    ),
)

ELECTION: EventType = event_type(
    name="election",
    groups=("conflict",),
    nouns="recount|count|vote",
    words={
        "job": ("guard the ballot boxes", "repair the counting machines", "print new ballots"),
        "deed": ("found the missing ballot box", "noticed the false seal", "counted the pile again"),
        "source": ("the election office", "officials", "observers", "both camps"),
    },
    cast={
        "winner": person("former rower|vet|retired colonel|pharmacist", definite=False),
        "loser": person("lawmaker|governor's aide|wine grower", definite=False),
        "minister": person("interior minister"),
        "party": body("party", "@ Alliance|@ Party|@ Union"),
        "rival": body("rival party", "@ League|@ Front|@ Movement"),
        "clerk": person("returning officer|head of the election office"),
        "observer": person("election observer|retired diplomat", definite=False),
        "site": building("counting hall", "@ Hall|the @ sports hall"),
        "company": body("maker of counting machines|software company", "@ Systems|@ Data"),
        "expert": person("political scientist|statistician", definite=False),
    },
    numbers={
        "margin": quantity(
            113,
            987,
            "By how many votes had the loser led in the first count?",
            "In the first count the lead was # votes.",
        ),
        "votes": quantity(
            55213, 98765, "How many votes did the winner receive?", "The winner received # votes."
        ),
        "against": quantity(
            10213, 54987, "How many votes did the loser receive?", "The loser received # votes."
        ),
        "spoiled": quantity(
            213, 1987, "How many ballots were spoiled?", "The office counted # spoiled ballots."
        ),
        "turnout": quantity(41, 89, "What was the turnout in per cent?", "The turnout was # per cent."),
        "stations": quantity(
            103, 487, "How many polling stations were there?", "People voted in # polling stations."
        ),
        "boxes": quantity(
            11, 38, "How many ballot boxes were found?", "In the cellar # ballot boxes were found."
        ),
        "counters": quantity(103, 987, "How many helpers counted?", "The ballots were counted by # helpers."),
        "complaints": quantity(213, 1987, "How many complaints were filed?", "Voters filed # complaints."),
        "previous": quantity(1013, 9876, "By how many votes had the last election been won?"),
    },
    texts={
        "what": (
            "a <recount~main> [overturned|reversed] the election in {town}",
            "a <[recount|second count]~main> in {town} [changed|reversed] the result of the election",
            "the <recount~main> in {town} gave the election to {winner}",
        ),
        "after": ("the <[recount|second count]~main> in {town}",),
        "headlines": (
            "Recount [overturns|reverses] election result",
            "A few votes [decide|turn] the election",
            "[Ballot boxes in the cellar|The boxes nobody counted|Counted twice]",
            "Loser [goes to court|cries foul] after recount",
            "Election office [under fire|faces questions]",
            "Machines [blamed|under suspicion] in [vote|election] muddle",
        ),
        "leads": (
            "{>what} on {$day}, wiping out a lead of {margin} votes.",
            "{winner} [won|has won] the election in {town} with {votes} votes, a <recount~main> showed on {$day}.",
            "A lead of {margin} votes [was not enough|melted away] for {loser} when the election in {town} was <counted again~main> on {$day}.",
            "{>what} on {$day}, after {boxes} ballot boxes had been found in a cellar.",
            "{loser}, who had led by {margin} votes in the first count, went to court on {$next}, a day after {>what}.",
        ),
    },
    units=(
        unit(
            "margin",
            "core",
            "in the first count {loser} had [led|been ahead] by {margin} votes",
            "{clerk} had first announced a lead of {margin} votes for {loser}",
            "a lead of {margin} votes in the first count [was thin|did not hold]",
        ),
        unit(
            "votes",
            "core",
            "for {party}, {winner} [received|won] {votes} votes; {loser} had {against} votes.",
            "in the end {votes} votes were for {winner} and {against} votes for {loser}",
            "{party} [took|won] {votes} votes against {against} votes for {rival}",
        ),
        unit(
            "spoiled",
            "core",
            "some {spoiled} ballots were spoiled[, many with jokes|]",
            "the office [set aside|threw out] {spoiled} spoiled ballots",
            "{loser.sub} wants {spoiled} spoiled ballots [looked at again|counted]",
        ),
        unit(
            "turnout",
            "core",
            "the turnout was {turnout} per cent in {stations} polling stations",
            "with {stations} polling stations open, turnout [reached|came to] {turnout} per cent",
            "a turnout of {turnout} per cent [surprised|pleased] the staff of all {stations} polling stations",
        ),
        unit(
            "boxes",
            "core",
            "in the cellar of {site}, {boxes} ballot boxes had been <[found|discovered]~find>",
            "a caretaker <[found|came upon]~find> {boxes} ballot boxes [behind chairs|under a tarpaulin] at {site}",
            "the <find~find> of {boxes} ballot boxes at {site} [led to|forced] the {ev}",
        ),
        unit(
            "counters",
            "core",
            "at {site}, {counters} helpers <counted~main> [by hand|under cameras]",
            "{clerk} [swore in|sent for] {counters} helpers",
            "the <counting~main> by {counters} helpers [took a day and a night|ended at dawn]",
        ),
        unit(
            "clerk",
            "core",
            '"[Every paper was held to the light|A mistake was made, by us|The sum is the sum]," said {clerk}.',
            "{clerk.sub} [offered to resign|refused to speak of fraud|showed the seals].",
        ),
        unit(
            "complaints",
            "after",
            "voters [filed|sent in] {complaints} complaints",
            "{lawyer} [carried|brought] {complaints} complaints to court",
            "{observer} [knew|had read] all {complaints} complaints",
        ),
        unit(
            "previous",
            "back",
            "the last election, in {before}, was won by {previous} votes",
            "in {before} {rival} had won by {previous} votes",
            "a lead of {previous} votes in {before} [was gone|had melted away]",
        ),
        unit(
            "winner",
            "voice",
            '"[I shall speak for those who voted against me, too|It took them two tries to find me|First I shall sleep]," said {winner}.',
            "{winner.sub} [danced|stood] [on the steps|among flags of {party}].",
        ),
        unit(
            "loser",
            "voice",
            '"[I won on the day and lost in a cellar|We shall see what the court says|Boxes do not walk]," said {loser}.',
            "{loser.sub} [did not congratulate|called it a farce].",
        ),
        unit(
            "observer",
            "after",
            '"[I have seen worse, and I have seen better|Muddle, not malice]," said {observer}.',
            "{observer} [slept|sat] beside the boxes",
        ),
        unit(
            "machines",
            "money",
            "machines made by {company} had [skipped|passed over] [thin paper|folded ballots]",
            "{speaker} [blamed|pointed to] damp paper",
            "the council wants its money back from {company}",
        ),
        unit(
            "expert",
            "back",
            '"[Close results are the most honest kind|A tie would have been decided by lot]," said {expert}.',
            "{expert} [called|thought] the outcome [possible but odd|within the usual error]",
        ),
    ),
    comparison=comparison(
        "in {PLACE}, {COUNT} people voted [by post|by letter]",
        "the post brought {COUNT} ballots from {PLACE}",
        which="From where did more votes come by post, {place_a.name} or {place_b.name}?",
        whether="Did more votes come by post from {place_a.name} than from {place_b.name}?",
    ),
)

EVENTS: tuple[EventType, ...] = (STRIKE, COURT, ELECTION)
