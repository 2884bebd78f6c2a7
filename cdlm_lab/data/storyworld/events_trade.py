"""Event types: the theft of a painting, a merger that fails, a cup final that is broken off."""

from __future__ import annotations

from cdlm_lab.data.storyworld.grammar import (
    EventType,
    body,
    building,
    comparison,
    person,
    quantity,
    unit,
    work,
)
from cdlm_lab.data.storyworld.shared_cast import event_type

# ruff: noqa: E501 -- a sentence with its wordings is easier to read on one line


THEFT: EventType = event_type(
    name="theft",
    groups=("conflict",),
    nouns="theft|robbery|burglary|raid",
    words={
        "job": ("mend the skylight", "install new cameras", "guard the other rooms"),
        "deed": ("noticed the empty frame", "heard the glass break", "wrote down the number plate"),
        "source": ("the police", "the museum", "detectives", "officials"),
    },
    cast={
        "site": building("museum|gallery", "the @ museum|the @ gallery"),
        "painting": work("painting", "View of @|Bridge at @|Winter in @|Harvest near @"),
        "painter": person("painter"),
        "minister": person("culture minister"),
        "chief": person("chief inspector|head of the art squad"),
        "curator": person("curator|museum director"),
        "guard": person("night guard"),
        "dealer": person("art dealer|restorer", definite=False),
        "company": body("alarm company|security company", "@ Security|@ Alarms|@ Guard"),
        "expert": person("art historian|auctioneer", definite=False),
    },
    numbers={
        "worth": quantity(
            11, 98, "How many millions is the painting worth?", "The painting is worth # million {$money}."
        ),
        "reward": quantity(10213, 98765, "How high is the reward?", "The reward is # {$money}."),
        "seconds": quantity(
            103, 487, "How many seconds did the thieves need?", "The thieves needed # seconds."
        ),
        "painted": quantity(
            1601, 1899, "In which year was the picture painted?", "The picture was painted in #.", year=True
        ),
        "height": quantity(
            31, 198, "How many centimetres high is the picture?", "The picture is # centimetres high."
        ),
        "tips": quantity(213, 1987, "How many tips did the police receive?", "The police received # tips."),
        "cameras": quantity(
            21, 98, "How many cameras were switched off?", "In the building # cameras were off."
        ),
        "visitors": quantity(10213, 98765, "How many visitors come each year?", "Each year # visitors come."),
        "bought": quantity(
            1901,
            1998,
            "In which year did the museum buy the picture?",
            "The picture was bought in #.",
            year=True,
        ),
        "searched": quantity(103, 987, "How many cars were searched?", "At the border # cars were searched."),
    },
    texts={
        "what": (
            'thieves <[stole|took|carried off]~main> the painting "{painting}" from {site} in {town}',
            "{painting} was <[stolen|taken|cut from its frame]~main> at {site} in {town}",
            "burglars <[broke into|raided]~main> {site} in {town}",
        ),
        "after": (
            "the <[theft|robbery]~main> at {site} in {town}",
            "the <theft~main> of {painting} from {site} in {town}",
        ),
        "headlines": (
            "[Thieves take|Burglars grab] [famous painting|old master]",
            "[An empty frame|A nail in the wall|The frame on the floor]",
            "Museum [alarm|cameras] [failed|switched off] on night of theft",
            "Police [search cars|follow hundreds of tips] after art theft",
            "[Reward offered|Insurer offers reward] for stolen painting",
            "Who [steals|would buy] a picture everyone knows?",
        ),
        "leads": (
            "Burglars <[broke into|raided]~main> {site} in {town} on {$day} and were gone in {seconds} seconds with a painting worth {worth} million {$money}.",
            "A painting worth {worth} million {$money} was <[stolen|taken]~main> from {site} in {town} on {$day}.",
            "Police [closed|watched] [the borders|all roads] on {$day}, hours after {>what}.",
            "{painting}, by {painter} and worth {worth} million {$money}, was <[stolen|cut from its frame]~main> on {$day} at {site} in {town}.",
            "A reward of {reward} {$money} was [offered|posted] on {$next}, a day after {>what}.",
        ),
    },
    units=(
        unit(
            "worth",
            "core",
            "{expert} said {painting} was worth {worth} million {$money}",
            "the picture is worth {worth} million {$money}[, though no one could sell it|]",
            "{painting} is worth {worth} million {$money}",
        ),
        unit(
            "picture",
            "core",
            "{painting}, {height} centimetres high, was painted by {painter} in {painted}",
            "{painter} painted the picture in {painted}; it is {height} centimetres high.",
            "the work of {painter}, painted in {painted}, is {height} centimetres high",
        ),
        unit(
            "seconds",
            "core",
            "the thieves [needed|were inside for] {seconds} seconds",
            "after {seconds} seconds the thieves were [gone|back in the van]",
            "a camera across the street shows the <[theft|raid]~main>: {seconds} seconds.",
        ),
        unit(
            "cameras",
            "core",
            "inside, {cameras} cameras were [off|switched off]",
            "{curator} [admitted|confirmed] that {cameras} cameras had been off",
            "{company} had [switched off|turned off] {cameras} cameras [to clean them|for an update]",
        ),
        unit(
            "reward",
            "core",
            "{insurer} offers a reward of {reward} {$money}",
            "a reward of {reward} {$money} [is on offer|was put up by {insurer}]",
            "for the return, {insurer} will pay a reward of {reward} {$money}",
        ),
        unit(
            "tips",
            "core",
            "the police [received|followed up] {tips} tips",
            "by evening {tips} tips had come in",
            "{chief} spoke of {tips} tips, [most of them worthless|three of them good]",
        ),
        unit(
            "chief",
            "core",
            '"[They knew which nail it hung on|Somebody opened a door that is never opened|Pictures come back, it takes patience]," said {chief}.',
            "{chief.sub} [ruled out nothing|suspects a theft to order|asked for silence].",
            '"[This was not their first ladder|We are talking to everyone with a key]," {chief} said.',
        ),
        unit(
            "visitors",
            "back",
            "each year {visitors} visitors come to {site}",
            "{site} [has|counts] {visitors} visitors a year",
            "[many|most] of the {visitors} visitors a year come for {painting}",
        ),
        unit(
            "bought",
            "back",
            "{site} bought the picture in {bought}",
            "the picture was bought in {bought} from [a widow|a convent]",
            "{curator} said it had been bought in {bought} [for the price of a house|against all advice].",
        ),
        unit(
            "searched",
            "official",
            "at the border, {searched} cars were searched",
            "the police searched {searched} cars [on {road}|at the border]",
            "in all, {searched} cars were searched, [one of them with skis|to no effect]",
        ),
        unit(
            "guard",
            "voice",
            '"[I made my round, I swear|They tied me up, politely|I only saw the torch]," said {guard}.',
            "{guard.sub} [was found|sat] [in the cloakroom|among the coats].",
        ),
        unit(
            "curator",
            "voice",
            '"[It is like losing a relative|The frame alone is a masterpiece|I said good night to it for twenty years]," said {curator}.',
            "{curator} [wept|stood] in front of the empty wall",
        ),
        unit(
            "dealer",
            "money",
            '"[It can only be ransomed|You cannot hang it, you cannot sell it]," said {dealer}.',
            "{dealer} expects a ransom note",
        ),
        unit(
            "expert",
            "back",
            '"[It is the light in it that one misses|There are three like it, all in vaults]," said {expert}.',
            "{expert.sub} [recalled|told of] a like <theft~earlier> in {before}.",
        ),
    ),
    comparison=comparison(
        "in {PLACE}, police questioned {COUNT} people",
        "among {COUNT} people questioned in {PLACE} was a locksmith",
        which="Where were more people questioned, in {place_a.name} or in {place_b.name}?",
        whether="Were more people questioned in {place_a.name} than in {place_b.name}?",
    ),
)

MERGER: EventType = event_type(
    name="merger",
    groups=("conflict",),
    nouns="deal|merger|takeover",
    words={
        "job": ("value the warehouses", "move the archives", "take down the signs"),
        "deed": (
            "leaked the secret letter",
            "asked the first question at the meeting",
            "counted the proxies",
        ),
        "source": ("both companies", "the cartel office", "people close to the talks", "analysts"),
    },
    cast={
        "company": body("dairy|brewer|publisher", "@ Group|@ Holdings|@ Brothers"),
        "buyer": body("rival|food maker|investor", "@ International|@ Partners|@ & Company"),
        "speaker": person("chief executive|chairwoman of the board"),
        "chairman": person("founder's grandson|main owner"),
        "minister": person("economy minister"),
        "regulator": person("head of the cartel office"),
        "site": building("factory|headquarters", "the @ works|the @ building"),
        "worker": person("warehouse worker|driver|laboratory assistant", definite=False),
        "analyst": person("analyst|fund manager", definite=False),
        "expert": person("economist|business historian", definite=False),
        "product_line": work("brand", "@"),
    },
    numbers={
        "price": quantity(
            113, 989, "How many millions was the deal worth?", "The deal was worth # million {$money}."
        ),
        "share": quantity(103, 989, "How much was offered per share?", "The offer was # {$money} per share."),
        "debt": quantity(113, 989, "How high is the debt in millions?", "The debt is # million {$money}."),
        "closing": quantity(1013, 9876, "How many jobs were to go?", "The plan would have cost # jobs."),
        "stake": quantity(
            21, 68, "What stake in per cent does the main owner hold?", "The main owner holds # per cent."
        ),
        "fee": quantity(
            11, 97, "How many millions is the break-up fee?", "The break-up fee is # million {$money}."
        ),
        "sites": quantity(21, 98, "How many sites does the company have?", "The company has # sites."),
        "market": quantity(41, 89, "What market share would they have had, in per cent?"),
        "talks": quantity(103, 298, "How many days did the talks last?", "The talks lasted # days."),
        "holders": quantity(1013, 9876, "How many shareholders came?", "To the meeting came # shareholders."),
    },
    texts={
        "what": (
            "the <[merger|deal]~main> between {company} and {buyer} <[collapsed|fell through]~failure>",
            "{buyer} <[withdrew|dropped]~failure> its <[offer|bid]~main> for {company}",
            "a <[takeover|merger]~main> of {company} by {buyer} was <[blocked|stopped]~failure>",
        ),
        "after": (
            "the <[collapse|failure]~failure> of the <[merger|deal]~main> between {company} and {buyer}",
        ),
        "headlines": (
            "[Merger|Deal] [collapses|falls through] at last minute",
            "[Bid|Offer] [withdrawn|dropped] after [months of talks|cartel warning]",
            "[No wedding|The bride stays at home|One signature short]",
            "Jobs [safe, debt is not|in doubt after failed deal]",
            "Owner [blocks|refuses] [sale|merger]",
            "Shareholders [boo|turn on] board after failed merger",
        ),
        "leads": (
            "{>what} on {$day}, ending {talks} days of talks over a deal worth {price} million {$money}.",
            "A <[deal|merger]~main> worth {price} million {$money} between {company} and {buyer} <[collapsed|fell through]~failure> on {$day}.",
            "{regulator} [said no|refused consent] on {$day}, and {>what}.",
            "{>what} on {$day} after {chairman}, who holds {stake} per cent, [refused to sell|would not sign].",
            "[Staff in|Workers in] {town} [cheered|danced] on {$day} when {>what}: {closing} jobs had been at risk.",
        ),
    },
    units=(
        unit(
            "price",
            "core",
            "the <[deal|merger]~main> was worth {price} million {$money}",
            "{buyer} had offered {share} {$money} per share, {price} million {$money} in all",
            "an offer of {share} {$money} per share had been [on the table|called fair by the board]",
        ),
        unit(
            "debt",
            "core",
            "{company} has a debt of {debt} million {$money}",
            "a debt of {debt} million {$money} [weighs on|remains with] {company}",
            "without {buyer}, a debt of {debt} million {$money} [falls due|must be paid]",
        ),
        unit(
            "jobs",
            "core",
            "the plan would have cost {closing} jobs[, most of them in {town}|]",
            "some {closing} jobs had been at risk at {site}",
            "at {site}, people had feared for {closing} jobs",
        ),
        unit(
            "stake",
            "core",
            "{chairman} holds {stake} per cent",
            "with {stake} per cent, {chairman} [had the last word|could block it]",
            "{chairman}, holder of {stake} per cent, [kept silent|stayed away]",
        ),
        unit(
            "fee",
            "core",
            "{buyer} must pay a break-up fee of {fee} million {$money}",
            "a break-up fee of {fee} million {$money} [is due|was agreed]",
            "the break-up fee of {fee} million {$money} goes to {company}",
        ),
        unit(
            "market",
            "core",
            "together they would have had {market} per cent of the market",
            "{regulator} objected to {market} per cent of the market in one hand",
            "a share of {market} per cent of the market was more than the cartel office would allow",
        ),
        unit(
            "regulator",
            "core",
            '"[Two is not a market|We count shelves, not promises|The law is older than this deal]," said {regulator}.',
            "{regulator.sub} [had set three conditions, none of them met|gave no reasons].",
        ),
        unit(
            "sites",
            "back",
            "{company} has {sites} sites, [the oldest of them|among them] {site}",
            "of {sites} sites, {site} is the [oldest|largest]",
            "{buyer} had wanted to keep only a few of {sites} sites",
        ),
        unit(
            "holders",
            "after",
            "at {hall}, {holders} shareholders [shouted|whistled]",
            "a meeting of {holders} shareholders in {hall} [ended in uproar|lasted until dark]",
            "before {holders} shareholders, {speaker} [defended|explained] the plan",
        ),
        unit(
            "brand",
            "back",
            "its best-known brand, {product_line}, [is sold in|goes to] {other} and beyond",
            "the brand {product_line} was what {buyer} wanted",
            "in {region}, everyone grew up with {product_line}",
        ),
        unit(
            "worker",
            "voice",
            '"[They would have kept the name and closed the gate|My locker stays where it is|We learned it from the radio]," said {worker}.',
            "{worker.sub} [opened a bottle|hugged strangers] at the gate of {site}.",
        ),
        unit(
            "chairman",
            "voice",
            '"[My grandfather sold milk, not shares|I can count, and I can wait]," said {chairman}.',
            "{chairman} [left|drove off] [in an old car|without a word]",
        ),
        unit(
            "analyst",
            "money",
            '"[Nobody will bid again this year|The debt is the story|It was love on paper]," said {analyst}.',
            "{analyst.sub} [cut|lowered] the target for {company}.",
        ),
        unit(
            "expert",
            "back",
            '"[Mergers fail at lunch, not in the books|Pride is a cost, too]," said {expert}.',
            "{expert} [pointed to|recalled] a failed <merger~earlier> in {before}",
        ),
    ),
    comparison=comparison(
        "the depot in {PLACE} employs {COUNT} people",
        "in {PLACE}, {COUNT} people work at the depot",
        which="Where does the depot employ more people, in {place_a.name} or in {place_b.name}?",
        whether="Does the depot in {place_a.name} employ more people than the one in {place_b.name}?",
    ),
)

FINAL: EventType = event_type(
    name="final",
    groups=("conflict",),
    nouns="final|match",
    words={
        "job": ("repair the stand", "replace the floodlights", "count the tickets again"),
        "deed": (
            "opened the gates to the pitch",
            "carried out the first of the injured",
            "switched off the loudspeakers",
        ),
        "source": ("the police", "the league", "stewards", "officials"),
    },
    cast={
        "site": building("stadium", "the @ stadium|@ Park"),
        "home": body("club", "@ United|@ Rovers|@ Athletic"),
        "guests": body("visiting club", "@ Wanderers|@ City|@ Town"),
        "minister": person("sports minister|interior minister"),
        "coach": person("coach"),
        "captain": person("captain|goalkeeper"),
        "scorer": person("striker|winger"),
        "referee": person("referee"),
        "chief": person("head of security|police commander"),
        "company": body("stadium owner|sponsor", "@ Arenas|@ Group|@ Beverages"),
        "fan": person("season-ticket holder|supporter", definite=False),
        "expert": person("crowd researcher|stadium planner", definite=False),
        "hospital": building("hospital", "@ Hospital|the @ clinic"),
    },
    numbers={
        "injured": quantity(
            103, 987, "How many people were injured at the match?", "At the match # people were injured."
        ),
        "attendance": quantity(
            10213, 48765, "How many spectators were there?", "The match was watched by # spectators."
        ),
        "minute": quantity(
            51, 89, "In which minute was the match broken off?", "The match was broken off in minute #."
        ),
        "capacity": quantity(
            51213, 98765, "How many seats does the stadium have?", "The stadium has # seats."
        ),
        "forged": quantity(
            1013, 9876, "How many forged tickets were found?", "Stewards found # forged tickets."
        ),
        "stewards": quantity(103, 987, "How many stewards were on duty?", "There were # stewards."),
        "flares": quantity(21, 98, "How many flares were lit?", "In the crowd # flares were lit."),
        "fine": quantity(10213, 98765, "How high is the fine?", "The fine is # {$money}."),
        "goals": quantity(11, 49, "How many goals did the striker score this season?"),
        "last": quantity(
            1921,
            1998,
            "In which year had the club last won the cup?",
            "The club last won the cup in #.",
            year=True,
        ),
    },
    texts={
        "what": (
            "the cup <final~main> between {home} and {guests} in {town} was <[abandoned|broken off]~stop>",
            "[a crush|a surge in the crowd] <[stopped|halted]~stop> the cup <final~main> between {home} and {guests} in {town}",
            "{referee} <[broke off|abandoned]~stop> the cup <final~main> between {home} and {guests} in {town}",
        ),
        "after": (
            "the <[abandoned|broken-off]~stop> cup <final~main> between {home} and {guests} in {town}",
        ),
        "headlines": (
            "Cup final [abandoned|broken off] after [crush|crowd surge]",
            "[Hundreds|Fans] hurt as [stand|crowd] [gives way|surges]",
            "[Ninety minutes that were not|The cup without a winner|A final with no whistle]",
            "Forged tickets [blamed|found] after [final|crush]",
            "Stadium owner [fined|under fire] after cup final",
            "Who won? [Nobody|Ask the league]",
        ),
        "leads": (
            "[At least|No fewer than] {injured} people were injured on {$day} when {>what}.",
            "{>what} on {$day} in minute {minute}, before {attendance} spectators; {injured} people were injured.",
            "{>what} on {$day} in minute {minute}[, with the score at one all|, with no goal scored|].",
            "What should have been a feast for {attendance} spectators ended on {$day} [when|as] {>what}.",
            "The league said on {$next} that it would [look into|decide on] the fate of the cup, a day after {>what} and {injured} people were injured.",
        ),
    },
    units=(
        unit(
            "injured",
            "core",
            "in all, {injured} people were injured[, most of them at the fences|]",
            "doctors [at|from] {hospital} treated {injured} injured people",
            "{hospital} counted {injured} injured people",
        ),
        unit(
            "attendance",
            "core",
            "the <[match|final]~main> drew {attendance} spectators",
            "{site}, which has {capacity} seats, held {attendance} spectators",
            "there were {attendance} spectators in {site}",
        ),
        unit(
            "minute",
            "core",
            "in minute {minute}, {referee} [blew the whistle|picked up the ball]",
            "{referee} <[sent|led]~stop> the players off in minute {minute}",
            "the clock stopped in minute {minute}",
        ),
        unit(
            "forged",
            "core",
            "stewards found {forged} forged tickets",
            "a printer in {other} had sold {forged} forged tickets",
            "{chief} spoke of {forged} forged tickets",
        ),
        unit(
            "stewards",
            "core",
            "{company} had hired {stewards} stewards",
            "only {stewards} stewards were on duty[, half the usual number|]",
            "at the gates, {stewards} stewards [were overrun|could do little]",
        ),
        unit(
            "last",
            "core",
            "{home} last won the cup in {last}",
            "not since {last} had {home} won the cup",
            "for {home}, cup winners in {last}, it was to be the [great day|second title]",
        ),
        unit(
            "chief",
            "core",
            '"[They pushed from behind and saw nothing|We opened what we could open|Ten minutes more and we would be counting the dead]," said {chief}.',
            "{chief.sub} [blamed|pointed to] [a jammed gate|late trains].",
            '"[No game is worth a rib|Everyone wanted in at once]," {chief} said.',
        ),
        unit(
            "flares",
            "colour",
            "in the guests' end, {flares} flares were lit",
            "the smoke of {flares} flares [drifted|hung] over {site}",
            "police [counted|picked up] {flares} flares",
        ),
        unit(
            "fine",
            "after",
            "{company} faces a fine of {fine} {$money}",
            "a fine of {fine} {$money} [is likely|may follow]",
            "the league imposed a fine of {fine} {$money} on {company}",
        ),
        unit(
            "scorer",
            "people",
            "{scorer}, with {goals} goals this season, [had just come on|had hit the post]",
            "for {guests}, {scorer} has scored {goals} goals this season",
            "with {goals} goals this season, {scorer} was the [hope|star] of {guests}",
        ),
        unit(
            "coach",
            "voice",
            '"[I do not care about the cup|We shall play it again, in front of nobody if need be|My players carried stretchers]," said {coach}.',
            "{coach.sub} [took off the scarf|ran to the fence] and [pulled people over|shouted for water].",
        ),
        unit(
            "captain",
            "voice",
            '"[I saw faces I know|You stop hearing the ball]," said {captain}.',
            "{captain.sub} [sat|knelt] in the circle [until the stand was empty|with the others].",
        ),
        unit(
            "fan",
            "voice",
            '"[My feet were off the ground|I lost a shoe and found my brother|I have a ticket, a real one]," said {fan}.',
            "{fan} had [queued since dawn|come by bicycle]",
        ),
        unit(
            "expert",
            "back",
            '"[A crowd is water, it needs drains|Eleven doors are not enough for such a house]," said {expert}.',
            "{expert.sub} [remembered|recalled] a like <crush~earlier> in {before}.",
        ),
    ),
    comparison=comparison(
        "{PLACE} had sent {COUNT} supporters",
        "from {PLACE}, {COUNT} supporters had come by train",
        which="Where did more supporters come from, {place_a.name} or {place_b.name}?",
        whether="Did more supporters come from {place_a.name} than from {place_b.name}?",
    ),
)

EVENTS: tuple[EventType, ...] = (THEFT, MERGER, FINAL)
