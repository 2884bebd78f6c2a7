// How strong becomes how dark. One hue, so that it reads for people who do not tell colours apart; what is
// chosen and what is compared carry a frame as well as a colour.

const FAR = "no direct weight: too far";
const CUT = "no direct weight: attention between documents is cut";
// Why words have no direct weight: they are in another document, or too far from others.
const unreached = (cut, from) => (["documents", "layer"].includes(cut) ? CUT : `${FAR} ${from}, and neither sees everything`);
const UNREAD = "not read: the documents are longer than what the model takes";
const STRONGEST = 0.68; // opacity of the first word of a document

// By rank: words below the top fifth of their document stay white.
function shadeOfRank(rank) {
  return rank <= 80 ? 0 : STRONGEST * ((rank - 80) / 20) ** 1.4;
}

// By strength: the share of the strongest word anywhere but in the chosen ones.
function shadeOfStrength(score, low, high) {
  return high > low ? STRONGEST * Math.max(0, (score - low) / (high - low)) : 0;
}

function paint(node, opacity) {
  node.style.backgroundColor = opacity > 0.005 ? `rgba(59,142,208,${opacity.toFixed(3)})` : "";
}

// A change from -1 to 1: above 0 blue, below 0 orange.
function paintSigned(node, value) {
  const opacity = STRONGEST * Math.min(1, Math.abs(value));
  node.style.backgroundColor = opacity > 0.02 ? `rgba(${value > 0 ? "59,142,208" : "213,94,0"},${opacity.toFixed(3)})` : "";
}

// The numbers of the `count` strongest words of other documents than `doc`.
function strongestElsewhere(answer, firsts, doc, count) {
  const best = [];
  for (let d = 0; d + 1 < firsts.length; d += 1) {
    if (d === doc) continue;
    for (let i = firsts[d]; i < firsts[d + 1]; i += 1) {
      if (!answer.reach[i] || !answer.counts[i]) continue;
      if (best.length < count || answer.scores[i] > answer.scores[best[best.length - 1]]) {
        best.push(i);
        best.sort((a, b) => answer.scores[b] - answer.scores[a]);
        if (best.length > count) best.pop();
      }
    }
  }
  return best;
}

function percent(rank) {
  const nearTheEnd = (rank > 99 && rank < 100) || (rank > 0 && rank < 1);
  return `${rank.toFixed(nearTheEnd ? 1 : 0)}%`;
}

// Curves over the columns, from what is chosen to where it looks. A word that is scrolled out of sight is
// pointed at where its column ends.

const SVG = "http://www.w3.org/2000/svg";

function arcLayer() {
  const layer = document.createElementNS(SVG, "svg");
  layer.setAttribute("class", "cdlm-x-arcs");
  layer.setAttribute("aria-hidden", "true");
  return layer;
}

// Where a curve begins or ends: at the side of the word's column, so that it crosses no text of it.
function anchor(node, frame) {
  const box = node.getBoundingClientRect();
  const view = node.closest(".cdlm-x-text").getBoundingClientRect();
  const column = node.closest(".cdlm-x-column").getBoundingClientRect();
  return {
    left: column.left - frame.left,
    right: column.right - frame.left,
    wordLeft: box.left - frame.left,
    wordRight: box.right - frame.left,
    y: Math.min(Math.max(box.top + box.height / 2, view.top + 3), view.bottom - 3) - frame.top,
    foot: box.bottom - frame.top,
    hidden: box.bottom < view.top || box.top > view.bottom,
  };
}

function stroke(d, className, strength) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", d);
  path.setAttribute("class", className);
  path.setAttribute("stroke-width", (0.8 + 2.4 * strength).toFixed(2));
  path.setAttribute("stroke-opacity", (0.3 + 0.6 * strength).toFixed(2));
  return path;
}

// links: [{from: node, to: node, strength in [0, 1], kind: "target" for compared words}]
function drawArcs(layer, columns, links) {
  layer.replaceChildren();
  const frame = columns.getBoundingClientRect();
  layer.setAttribute("width", columns.scrollWidth);
  layer.setAttribute("height", columns.clientHeight);
  const shift = columns.scrollLeft;
  for (const { from, to, strength, kind } of links) {
    const a = anchor(from, frame);
    const b = anchor(to, frame);
    const forward = b.left >= a.left;
    const x1 = (forward ? a.right : a.left) + shift;
    const x2 = (forward ? b.left : b.right) + shift;
    const bend = Math.max(20, Math.abs(x2 - x1) * 0.42) * (forward ? 1 : -1);
    const lift = Math.abs(x2 - x1) > 100 ? 36 : 0; // over other columns a curve crosses lines, it does not strike them out
    const middle = `${x1 + bend} ${a.y - lift} ${x2 - bend} ${b.y - lift}`;
    const curve = stroke(`M${x1} ${a.y}C${middle} ${x2} ${b.y}`, "cdlm-x-arc", strength);
    if (a.hidden || b.hidden) curve.setAttribute("stroke-dasharray", "3 4");
    const dot = document.createElementNS(SVG, "circle");
    dot.setAttribute("cx", x2);
    dot.setAttribute("cy", b.y);
    dot.setAttribute("r", b.hidden ? 2 : 3.2);
    const group = document.createElementNS(SVG, "g");
    if (kind) group.setAttribute("class", `cdlm-x-to-${kind}`);
    group.append(curve, dot);
    layer.append(group);
    const ends = [[a, x1, forward ? a.wordRight : a.wordLeft], [b, x2, forward ? b.wordLeft : b.wordRight]];
    for (const [end, edge, word] of ends) {
      // below the line of text: through the middle it would strike the words out
      if (!end.hidden) group.append(stroke(`M${edge} ${end.y}V${end.foot}H${word + shift}`, "cdlm-x-leader", 0));
    }
  }
}
