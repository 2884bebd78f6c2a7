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

class WordPanel extends Panel {
  constructor(explorer, name, showName) {
    const words = [];
    super(explorer, name, showName, (number) => {
      const made = wordColumn(explorer.documents, number);
      words.push(...made.words);
      return made;
    });
    this.words = words;
    this.verdict = element("span", "cdlm-x-verdict");
    this.lost = element("span", "cdlm-x-muted");
    this.title.append(this.verdict, this.lost);
    this.answer = null;
    this.guesses = new Guesses();
  }

  // Frames of what is chosen, compared, global and masked.
  mark(selection) {
    const { firsts } = this.explorer;
    const classes = {
      "cdlm-x-source": [selection.source],
      "cdlm-x-target": [selection.target],
      "cdlm-x-global": [...selection.extra_global, selection.source_global ? selection.source : null],
      "cdlm-x-masked": selection.masked,
    };
    for (const [name, spans] of Object.entries(classes)) {
      for (const node of this.columns.querySelectorAll(`.${name}`)) node.classList.remove(name);
      for (const span of spans) {
        if (!span) continue;
        for (let i = span[1]; i < span[2]; i += 1) this.words[firsts[span[0]] + i].classList.add(name);
      }
    }
  }

  show(answer, selection, options) {
    this.answer = answer;
    const { firsts, counts } = this.explorer;
    const { source } = selection;
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < this.words.length; i += 1) {
      if (!counts[i] || this.isSource(i, source)) continue;
      low = Math.min(low, answer.scores[i]);
      high = Math.max(high, answer.scores[i]);
    }
    this.words.forEach((word, i) => {
      const shown = counts[i] && answer.reach[i] && !this.isSource(i, source);
      const shade = !shown ? 0 : options.shade === "rank" ? shadeOfRank(answer.ranks[i]) : shadeOfStrength(answer.scores[i], low, high);
      paint(word, shade);
      word.classList.toggle("cdlm-x-unreached", !answer.reach[i]);
    });
    const best = source && options.arcs ? strongestElsewhere({ ...answer, counts }, firsts, source[0], options.arcs) : [];
    const top = best.length ? answer.scores[best[0]] : 1;
    const from = source ? this.words[firsts[source[0]] + source[1]] : null;
    this.links = best.map((i) => ({
      from,
      to: this.words[i],
      strength: high > low ? Math.max(0, (answer.scores[i] - low) / Math.max(top - low, 1e-12)) : 0,
    }));
    this.verdict.textContent = this.explorer.verdict(answer, selection);
    this.guesses.show(answer.predictions, (span) => this.words[firsts[span[0]] + span[2] - 1]);
    const lost = answer.read.reduce((count, read) => count + !read, 0);
    this.lost.textContent = lost ? `${lost} grey ${lost === 1 ? "word is" : "words are"} more than it can read` : "";
    this.redrawArcs();
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
