"""Which pairs of mentions a system got wrong, the worst first: those it merged, and those it split.

Clusters of ten mentions each, merged by mistake, are a hundred wrong pairs that say the same; so of the pairs
between the same two gold clusters (of one, if it was split) the worst is shown and the others are counted.

What a system put together: each cluster as a card, its mentions in their sentences, the wrong ones marked.

In a card, the gold cluster with most of the mentions is the one that the card is about; a mention of another
gold cluster gets a dashed line, a sign and a name. The page is plain HTML without scripts (see `markup`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import (
    FRAME,
    GLOBAL,
    MUTED,
    ShownMention,
    count_in_words,
    escaped,
    gold_chip,
    gold_colours,
    muted,
    sentence_html,
    shortened,
    table_html,
)

IN_SIGHT = 5  # mentions of the main gold cluster, and as many others, that a card shows unfolded
IN_FOLD = 80  # mentions below its fold
LONGEST_TITLE = 48  # characters
CHIPS = 8  # gold clusters that the head of a card names
_STYLE = """
div.cdlm-clusters{font-size:13.5px;line-height:1.5;color:var(--jp-ui-font-color1,inherit);max-width:1180px}
div.cdlm-clusters .cdlm-card{background:var(--jp-layout-color1,transparent)}
div.cdlm-clusters summary{cursor:pointer;margin-top:6px;color:var(--jp-content-link-color,inherit)}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCluster:
    """Mentions that a system put together.

    Attributes:
        name: what to call it, such as its number; unlike that of any other.
        mentions: in the order to show them.

    Raises:
        ValueError: no mentions.
    """

    name: str
    mentions: tuple[ShownMention, ...]

    def __post_init__(self) -> None:
        if not self.mentions:
            raise ValueError(f"cluster {self.name} has no mentions; leave it out")

    @property
    def golds(self) -> Counter[str | None]:
        """How many of the mentions each gold cluster has, most first, of equals the first seen."""
        return Counter(dict(Counter(mention.gold for mention in self.mentions).most_common()))

    @property
    def is_mixed(self) -> bool:
        """Whether mentions of several gold clusters are in it."""
        return len(self.golds) > 1


def clusters_html(clusters: Sequence[ShownCluster], *, limit: int = 40) -> str:
    """The clusters as one block of HTML, largest first; clusters of one mention are a folded list at the end.

    Args:
        clusters: all that a system made, so that the page can say where the rest of a gold cluster is.
        limit: at most so many clusters of several mentions are shown, and as many of one.

    Raises:
        ValueError: two clusters of one name, `limit` below 1.
    """
    names = [cluster.name for cluster in clusters]
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise ValueError(f"two clusters are called {repeated[0]!r}; name them apart")
    if limit < 1:
        raise ValueError(f"limit is {limit}; show at least one cluster")
    ordered = sorted(clusters, key=lambda cluster: -len(cluster.mentions))
    several = [cluster for cluster in ordered if len(cluster.mentions) > 1]
    single = [cluster for cluster in ordered if len(cluster.mentions) == 1]
    places = _places(ordered)
    colours = gold_colours(cluster.golds for cluster in [*several[:limit], *single[:limit]])
    columns = (
        "display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:12px;align-items:start"
    )
    cards = "".join(_card(cluster, colours, places) for cluster in several[:limit])
    return "".join(
        (
            f'<div class="cdlm-clusters"><style>{_STYLE}</style>',
            _headline(several, single),
            f'<div style="{columns}">{cards}</div>' if cards else "",
            _left_out(len(several) - limit, "cluster of several mentions", "clusters of several mentions"),
            _singles(single, colours, places, limit=limit),
            "</div>",
        )
    )


def _places(clusters: Sequence[ShownCluster]) -> dict[str, list[str]]:
    """Gold cluster -> names of the clusters that hold some of it."""
    places: dict[str, list[str]] = {}
    for cluster in clusters:
        for gold in cluster.golds:
            if gold is not None:
                places.setdefault(gold, []).append(cluster.name)
    return places


def _headline(several: Sequence[ShownCluster], single: Sequence[ShownCluster]) -> str:
    everything = [*several, *single]
    mentions = sum(len(cluster.mentions) for cluster in everything)
    facts = [f"<b>{_count(len(everything), 'cluster')}</b> of {_count(mentions, 'mention')}"]
    if any(gold is not None for cluster in everything for gold in cluster.golds):
        mixed = sum(cluster.is_mixed for cluster in everything)
        facts.append(f"{count_in_words(mixed)} with mentions of several gold clusters")
    facts.append(f"{_count(len(single), 'mention')} alone")
    line = " \u00b7 ".join(facts)
    return f'<div style="margin:4px 0 10px">{line}</div>'


def _card(
    cluster: ShownCluster, colours: Mapping[str | None, str], places: Mapping[str, Sequence[str]]
) -> str:
    main = next(iter(cluster.golds))
    documents = len({mention.document for mention in cluster.mentions})
    texts = Counter(mention.text.lower() for mention in cluster.mentions)
    title = escaped(shortened(texts.most_common(1)[0][0], LONGEST_TITLE))
    head = (
        f'<div><span style="{MUTED}"><bdi>{escaped(cluster.name)}</bdi></span>&ensp;'
        f'<bdi style="font-weight:600">{title}</bdi></div>'
        + muted(f"{_count(len(cluster.mentions), 'mention')}, {_count(documents, 'document')}")
        + _chips(cluster, colours, places)
    )
    seen, folded = _in_sight(cluster, main)
    body = "".join(_row(mention, main, colours) for mention in seen)
    if folded:
        others = sum(mention.gold != main for mention in folded)
        what = (
            f"{_count(len(folded), 'more mention')}{f', {others} of other gold clusters' if others else ''}"
        )
        rows = "".join(_row(mention, main, colours) for mention in folded[:IN_FOLD])
        rest = _left_out(len(folded) - IN_FOLD, "mention", "mentions")
        body += f"<details><summary>{what}</summary>{rows}{rest}</details>"
    frame = f"{FRAME};border-radius:8px;padding:10px 14px 12px"
    return f'<div class="cdlm-card" style="{frame}">{head}{body}</div>'


def _chips(
    cluster: ShownCluster, colours: Mapping[str | None, str], places: Mapping[str, Sequence[str]]
) -> str:
    """The gold clusters of a card, how many mentions each has in it, and which clusters hold the others."""
    if set(cluster.golds) == {None}:
        return ""
    chips = []
    for gold, count in list(cluster.golds.items())[:CHIPS]:
        elsewhere = [name for name in places.get(gold or "", ()) if name != cluster.name]
        chips.append(gold_chip(gold, colours[gold], f"{count} here{_elsewhere(elsewhere)}"))
    more = len(cluster.golds) - CHIPS
    note = f'<span style="font-size:12px;{MUTED}">and {more} more gold clusters</span>' if more > 0 else ""
    return f'<div style="margin:4px 0 2px">{"".join(chips)}{note}</div>'


def _elsewhere(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(f"<bdi>{escaped(shortened(name, 20))}</bdi>" for name in names[:4])
    return f", others in {shown}{' and elsewhere' if len(names) > 4 else ''}"


def _in_sight(cluster: ShownCluster, main: str | None) -> tuple[list[ShownMention], list[ShownMention]]:
    """Mentions above and below the fold: the main gold cluster first, the wrong ones never all hidden."""
    right = [mention for mention in cluster.mentions if mention.gold == main]
    wrong = [mention for mention in cluster.mentions if mention.gold != main]
    if len(cluster.mentions) <= IN_SIGHT + 1:  # a fold for one line is more bother than it saves
        return right + wrong, []
    return right[:IN_SIGHT] + wrong[:IN_SIGHT], wrong[IN_SIGHT:] + right[IN_SIGHT:]


def _row(mention: ShownMention, main: str | None, colours: Mapping[str | None, str]) -> str:
    colour = colours[mention.gold]
    wrong = mention.gold != main
    line = f"border-left:3px {'dashed' if wrong else 'solid'} {colour};padding:1px 0 1px 10px;margin:6px 0"
    sign = (
        f'<span style="color:{colour}">\u2260</span>&ensp;{gold_chip(mention.gold, colour)}' if wrong else ""
    )
    return f'<div style="{line}">{sign}{sentence_html(mention, colour)}</div>'


def _singles(
    single: Sequence[ShownCluster],
    colours: Mapping[str | None, str],
    places: Mapping[str, Sequence[str]],
    *,
    limit: int,
) -> str:
    if not single:
        return ""
    rows = []
    for cluster in single[:limit]:
        (mention,) = cluster.mentions
        elsewhere = [name for name in places.get(mention.gold or "", ()) if name != cluster.name]
        note = gold_chip(mention.gold, colours[mention.gold], _elsewhere(elsewhere)[2:]) if elsewhere else ""
        name = f'<span style="font-size:12px;{MUTED}"><bdi>{escaped(cluster.name)}</bdi></span>&ensp;'
        line = f"border-left:3px solid {colours[mention.gold]};padding:1px 0 1px 10px;margin:6px 0"
        text = sentence_html(mention, colours[mention.gold])
        rows.append(f'<div style="{line}">{name}{note}{text}</div>')
    rest = _left_out(len(single) - limit, "cluster of one mention", "clusters of one mention")
    return (
        f"<details><summary>{_count(len(single), 'mention')} alone</summary>{''.join(rows)}{rest}</details>"
    )


def _left_out(count: int, one: str, many: str) -> str:
    if count < 1:
        return ""
    return muted(f"\u2026 and {count_in_words(count)} more {one if count == 1 else many}, not shown")


def _count(count: int, what: str) -> str:
    return f"{count_in_words(count)} {what}{'' if count == 1 else 's'}"


_TRACK = "rgba(128,128,128,0.28)"
_STYLE_COREFERENCE_ERRORS = """
div.cdlm-errors{font-size:13.5px;line-height:1.5;color:var(--jp-ui-font-color1,inherit);max-width:1180px}
div.cdlm-errors table.cdlm-table tr{background:none!important}
div.cdlm-errors table.cdlm-table td:nth-child(n+2){width:46%}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """Two mentions and the probability, in [0, 1], that the scorer gives them to corefer."""

    first: ShownMention
    second: ShownMention
    score: float

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise ValueError(f"the score of a pair is {self.score}; it must lie in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceErrors:
    """The wrong pairs of a system, in any order.

    Attributes:
        merged: pairs put into one cluster that do not corefer.
        split: pairs that corefer, put into different clusters.
        threshold: of the clustering; a pair on the right side of it was misled by other pairs, and the page
            says so. None = not known.
    """

    merged: tuple[PairError, ...]
    split: tuple[PairError, ...]
    threshold: float | None = None


def errors_html(errors: CoreferenceErrors, *, limit: int = 20) -> str:
    """Two tables of pairs, each with its score and both mentions in their sentences.

    Merged pairs stand in order of falling score, split ones in order of rising score: the surest mistakes of
    the scorer first.

    Args:
        limit: rows of each table.

    Raises:
        ValueError: `limit` below 1.
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}; show at least one pair")
    merged = sorted(errors.merged, key=lambda pair: -pair.score)
    split = sorted(errors.split, key=lambda pair: pair.score)
    at = errors.threshold
    joined_by_others = [pair for pair in merged if at is not None and pair.score <= at]
    parted_by_others = [pair for pair in split if at is not None and pair.score > at]
    notes = {id(pair): "joined by way of others" for pair in joined_by_others}
    notes |= {id(pair): "kept apart by others" for pair in parted_by_others}
    sections = (
        ("Merged", "in one cluster, but they do not corefer; the highest score first", merged),
        ("Split", "in two clusters, but they corefer; the lowest score first", split),
    )
    body = "".join(_section(*section, notes=notes, limit=limit) for section in sections)
    return f'<div class="cdlm-errors"><style>{_STYLE_COREFERENCE_ERRORS}</style>{body}</div>'


def _section(
    name: str, meaning: str, pairs: Sequence[PairError], *, notes: Mapping[int, str], limit: int
) -> str:
    count = f"{count_in_words(len(pairs))} pair{'' if len(pairs) == 1 else 's'}"
    head = (
        f'<div style="font-size:16px;font-weight:600;margin-top:14px">{name}: {count}</div>{muted(meaning)}'
    )
    if not pairs:
        return head
    rows = _worst_of_each(pairs)
    shown = rows[:limit]
    colours = gold_colours((pair.first.gold, pair.second.gold) for pair, _ in shown)
    cells = [
        (
            _score(pair.score, notes.get(id(pair), ""), alike),
            _mention(pair.first, colours),
            _mention(pair.second, colours),
        )
        for pair, alike in shown
    ]
    table = table_html(("score", "one mention", "the other"), cells, text_columns=(0, 1, 2))
    left = sum(1 + alike for _, alike in rows[limit:])
    rest = f"\u2026 and {count_in_words(left)} more pair{'' if left == 1 else 's'}, not shown" if left else ""
    return head + table + (muted(rest) if rest else "")


def _worst_of_each(pairs: Sequence[PairError]) -> list[tuple[PairError, int]]:
    """The first pair of each two gold clusters, and how many more there are; pairs without gold stay."""
    rows: dict[object, list[PairError]] = {}
    for place, pair in enumerate(pairs):
        golds = frozenset((pair.first.gold, pair.second.gold))
        rows.setdefault(place if None in golds else golds, []).append(pair)
    return [(alike[0], len(alike) - 1) for alike in rows.values()]


def _score(score: float, note: str, alike: int) -> str:
    bar = f'<div style="width:{100 * score:.0f}%;height:4px;border-radius:2px;background:{GLOBAL}"></div>'
    small = [note] if note else []
    if alike:
        small.append(f"and {count_in_words(alike)} more pair{'' if alike == 1 else 's'} like this")
    return (
        f'<div style="width:112px"><span style="font-weight:600">{score:.3f}</span>'
        f'<div style="width:72px;border-radius:2px;background:{_TRACK};margin:2px 0 3px">{bar}</div>'
        f"{''.join(muted(text, size=11.5) for text in small)}</div>"
    )


def _mention(mention: ShownMention, colours: Mapping[str | None, str]) -> str:
    colour = colours[mention.gold]
    return f"<div>{gold_chip(mention.gold, colour)}</div>{sentence_html(mention, colour)}"
