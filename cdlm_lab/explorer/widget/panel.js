// One model's view of the documents: columns, what is shaded in them, and curves between them.

class Panel {
  // `columnOf(number)` makes the column of a document: {column, text, ...}.
  constructor(explorer, name, showName, columnOf) {
    this.explorer = explorer;
    this.root = element("div", "cdlm-x-panel");
    this.title = element("div", "cdlm-x-panel-head");
    this.title.append(element("b", "", showName ? name : ""));
    this.columns = element("div", "cdlm-x-columns");
    this.texts = explorer.documents.map((_, number) => {
      const { column, text } = columnOf(number);
      this.columns.append(column);
      return text;
    });
    this.arcs = arcLayer();
    this.columns.append(this.arcs);
    for (const node of [this.columns, ...this.texts]) {
      node.addEventListener("scroll", () => this.redrawArcs(), { passive: true });
    }
    this.root.append(this.title, this.columns);
    this.links = [];
  }

  redrawArcs() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = null;
      drawArcs(this.arcs, this.columns, this.links);
    });
  }
}

const ATTRIBUTE_WHAT = "hide a word (choose “hides” and click it) to see what its prediction rests on";

class WordPanel extends Panel {
  // `side`: "" = the text as it is now; of two panels of a model, the text "after" the rewriting and "before" it.
  constructor(explorer, number, side) {
    const words = [];
    const names = explorer.options.models;
    const name = names.length > 1 ? names[number] : "";
    super(explorer, side ? `${name}${name ? ", " : ""}${side} the rewriting` : name, true, (number) => {
      const made = wordColumn(explorer.documents, number);
      words.push(...made.words);
      return made;
    });
    Object.assign(this, { words, number, side });
    this.verdict = element("span", "cdlm-x-verdict");
    this.lost = element("span", "cdlm-x-muted");
    this.title.append(this.verdict, this.lost);
    this.answer = null;
    this.guesses = new Guesses();
  }

  // Frames of what is chosen, compared, global and masked; and what is rewritten.
  mark(selection) {
    const { firsts, documents } = this.explorer;
    for (const node of this.columns.querySelectorAll(".cdlm-x-edited")) {
      node.textContent = documents[node.dataset.doc].words[node.dataset.word];
      node.classList.remove("cdlm-x-edited");
    }
    for (const [doc, word, text] of selection.edits) {
      const node = this.words[firsts[doc] + word];
      node.classList.add("cdlm-x-edited");
      if (this.side !== "before") node.textContent = text;
    }
    const classes = {
      "cdlm-x-source": [selection.source],
      "cdlm-x-target": [selection.target],
      "cdlm-x-global": [...selection.extra_global, selection.source_global ? selection.source : null],
      "cdlm-x-masked": selection.masked,
    };
    for (const [name, spans] of Object.entries(classes)) {
      for (const node of this.columns.querySelectorAll(`.${name}`)) node.classList.remove(name);
      const chosen = name === "cdlm-x-source";
      if (chosen) for (const node of this.columns.querySelectorAll("[aria-selected]")) node.removeAttribute("aria-selected");
      for (const span of spans) {
        if (!span) continue;
        for (let i = span[1]; i < span[2]; i += 1) {
          const word = this.words[firsts[span[0]] + i];
          word.classList.add(name);
          if (chosen) word.setAttribute("aria-selected", "true");
        }
      }
    }
  }

  show(panels, selection, look) {
    const answer = this.side === "before" ? panels[this.number].before : panels[this.number];
    if (!answer) return;
    this.answer = answer;
    const { firsts, counts } = this.explorer;
    const shading = this.shading(answer, selection, look);
    const { of, from, signed } = shading;
    let [low, high] = [Infinity, -Infinity];
    this.words.forEach((_, i) => {
      if (!counts[i] || this.isSource(i, from)) return;
      low = Math.min(low, of(i));
      high = Math.max(high, of(i));
    });
    const largest = shading.largest ?? Math.max(Math.abs(low), Math.abs(high));
    this.words.forEach((word, i) => {
      const shown = counts[i] && answer.reach[i] && !this.isSource(i, from);
      if (signed) paintSigned(word, shown ? of(i) : 0, largest);
      else paint(word, !shown ? 0 : look.shade === "rank" ? shadeOfRank(answer.ranks[i]) : shadeOfStrength(of(i), low, high));
      word.classList.toggle("cdlm-x-unreached", !answer.reach[i]);
    });
    const scores = signed ? this.words.map((_, i) => Math.abs(of(i))) : answer.scores;
    this.link(from, { scores, reach: answer.reach, counts }, look.arcs, signed ? 0 : low);
    this.lead(from, selection.target, answer);
    this.verdict.textContent = this.verdictOf(answer, selection);
    this.guesses.show(answer.predictions, (span) => this.words[firsts[span[0]] + span[2] - 1], answer.before?.predictions);
    const lost = answer.read.reduce((count, read) => count + !read, 0);
    const unread = lost ? `${lost} grey ${lost === 1 ? "word is" : "words are"} more than it can read` : "";
    this.lost.textContent = [shading.note, unread].filter(Boolean).join("; ");
    this.redrawArcs();
  }

  // What shades the words: a number for each, from where curves lead, and what there is to say of it.
  shading(answer, selection, look) {
    const { attributed, before } = answer;
    if (look.shade === "gradients") {
      if (!attributed) return { of: () => 0, from: null, signed: true, largest: 1, note: this.side === "before" ? "" : ATTRIBUTE_WHAT };
      const name = textOfSpan(withEdits(this.explorer.documents, selection.edits), attributed.span);
      const [output, baseline, total] = ["output", "baseline", "total"].map((key) => attributed[key].toFixed(2).replace("-", "−"));
      const sum = (attributed.output - attributed.baseline).toFixed(2).replace("-", "−");
      const note = `blue speaks for “${name}”, orange against: log-probability ${output}, with all words hidden ${baseline}; the words add up to ${total} of the difference of ${sum}`;
      return { of: (i) => attributed.words[i], from: attributed.span, signed: true, note };
    }
    const from = selection.source;
    if (before && !this.side) {
      const note = "blue ranks higher than before the rewriting, orange lower";
      return { of: (i) => answer.ranks[i] - before.ranks[i], from, signed: true, largest: 50, note };
    }
    return { of: (i) => answer.scores[i], from };
  }

  // Curves from a span to the strongest words of the other documents.
  link(span, answer, count, low) {
    const { firsts } = this.explorer;
    const best = span && count ? strongestElsewhere(answer, firsts, span[0], count) : [];
    const top = best.length ? answer.scores[best[0]] : 1;
    this.links = best
      .filter((i) => answer.scores[i] > low || top === low)
      .map((i) => ({
        from: this.words[firsts[span[0]] + span[1]],
        to: this.words[i],
        strength: Math.max(0, (answer.scores[i] - low) / Math.max(top - low, 1e-12)),
      }));
  }

  // A curve to the compared words too, and beside them how high they rank.
  lead(span, target, answer) {
    this.rank?.remove();
    const { firsts } = this.explorer;
    const first = target && firsts[target[0]] + target[1];
    if (!target || answer.target_rank === null || answer.target_rank === undefined || !answer.reach[first]) return;
    this.rank = element("span", "cdlm-x-rank", `above ${percent(answer.target_rank)}`);
    this.rank.dir = "ltr";
    this.rank.title = "of the words of its document";
    this.words[firsts[target[0]] + target[2] - 1].after(this.rank);
    if (!span || span[0] === target[0]) return;
    const to = this.words.slice(first, firsts[target[0]] + target[2]);
    this.links = this.links.filter((link) => !to.includes(link.to));
    this.links.push({ from: this.words[firsts[span[0]] + span[1]], to: to[0], strength: 0.8, kind: "target" });
  }

  verdictOf(answer, selection) {
    const verdict = this.explorer.verdict(answer, selection);
    const earlier = answer.before?.target_rank;
    const compared = verdict && !this.side && earlier !== null && earlier !== undefined;
    return compared ? `${verdict}, before the rewriting ${percent(earlier)}` : verdict;
  }

  isSource(i, source) {
    if (!source) return false;
    const first = this.explorer.firsts[source[0]];
    return first + source[1] <= i && i < first + source[2];
  }

  // Bring a span into sight within the panel: the notebook stays where it is.
  reveal(span) {
    if (!span) return;
    const word = this.words[this.explorer.firsts[span[0]] + span[1]];
    const text = this.texts[span[0]];
    const { columns } = this;
    const column = text.parentElement;
    if (column.offsetLeft < columns.scrollLeft || column.offsetLeft + column.offsetWidth > columns.scrollLeft + columns.clientWidth) {
      columns.scrollLeft = column.offsetLeft;
    }
    const offset = word.offsetTop - text.offsetTop;
    if (offset < text.scrollTop + 8 || offset > text.scrollTop + text.clientHeight - 28) {
      text.scrollTop = Math.max(0, offset - text.clientHeight / 2);
    }
  }
}

// The overview: sentences for words. Nothing chosen: the strongest links between documents.
class SentencePanel extends Panel {
  constructor(explorer, name, showName, matrix) {
    const [blocks, owners] = [[], []];
    super(explorer, name, showName, (number) => {
      const made = sentenceColumn(explorer.documents, number, blocks.length);
      blocks.push(...made.sentences);
      owners.push(...made.sentences.map(() => number));
      return made;
    });
    Object.assign(this, { blocks, owners, matrix });
    for (const [name_, enter] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) {
      this.blocks.forEach((block, row) => block.addEventListener(name_, () => this.look(enter ? row : null)));
    }
    this.look(null);
  }

  value(row, column) {
    return this.matrix[row * this.blocks.length + column];
  }

  look(row) {
    const n = this.blocks.length;
    let pairs = [];
    for (let r = 0; r < n; r += 1) {
      if (row !== null && r !== row) continue;
      for (let c = 0; c < n; c += 1) {
        if (this.owners[r] !== this.owners[c]) pairs.push([this.value(r, c), r, c]);
      }
    }
    pairs.sort((a, b) => b[0] - a[0]);
    const low = pairs.length ? pairs[pairs.length - 1][0] : 0;
    const high = pairs.length ? pairs[0][0] : 1;
    this.blocks.forEach((block, i) => {
      block.classList.toggle("cdlm-x-source", i === row);
      if (row === null) paint(block, 0);
    });
    if (row !== null) for (const [value, , c] of pairs) paint(this.blocks[c], shadeOfStrength(value, low, high));
    this.links = pairs.slice(0, row === null ? 14 : 5).map(([value, r, c]) => ({
      from: this.blocks[r],
      to: this.blocks[c],
      strength: high > low ? (value - low) / (high - low) : 0,
    }));
    this.redrawArcs();
  }
}
