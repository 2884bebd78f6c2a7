// One model's view of the documents: columns, what is shaded in them, and curves between them.

class Panel {
  // `side`: "" = as it is now; of two panels of a model, "after" the rewriting or the cut, and "before" it.
  constructor(explorer, number, side) {
    const names = explorer.options.models;
    const name = names.length > 1 ? names[number] : "";
    const made = explorer.documents.map((_, doc) => wordColumn(explorer.documents, doc));
    Object.assign(this, { explorer, number, side, name, answer: null, links: [], guesses: new Guesses() });
    this.words = made.flatMap((one) => one.words);
    this.texts = made.map((one) => one.text);
    this.root = element("div", "cdlm-x-panel");
    this.title = element("div", "cdlm-x-panel-head");
    this.verdict = element("span", "cdlm-x-verdict");
    this.lost = element("span", "cdlm-x-muted");
    this.heading = element("b", "", name);
    this.title.append(this.heading, this.verdict, this.lost);
    this.columns = element("div", "cdlm-x-columns");
    this.arcs = arcLayer();
    this.columns.append(...made.map((one) => one.column), this.arcs);
    for (const node of [this.columns, ...this.texts]) {
      node.addEventListener("scroll", () => this.redrawArcs(), { passive: true });
    }
    this.root.append(this.title, this.columns);
  }

  redrawArcs() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = null;
      drawArcs(this.arcs, this.columns, this.links);
    });
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
    const { firsts, counts, change: what } = this.explorer;
    const side = this.side && what ? `${this.side} the ${what}` : "";
    this.heading.textContent = [this.name, side].filter(Boolean).join(", ");
    const { before } = answer;
    const from = selection.source;
    const signed = Boolean(before && !this.side); // of one text: what the rewriting changed
    const shown = (i) => counts[i] && answer.reach[i] && !this.isSource(i, from);
    const others = answer.scores.filter((_, i) => counts[i] && !this.isSource(i, from));
    const [low, high] = [others.reduce((a, b) => Math.min(a, b), Infinity), others.reduce((a, b) => Math.max(a, b), -Infinity)];
    const change = (i) => answer.ranks[i] - before.ranks[i];
    this.words.forEach((word, i) => {
      if (signed) paintSigned(word, shown(i) ? change(i) / 50 : 0);
      else paint(word, !shown(i) ? 0 : look.shade === "rank" ? shadeOfRank(answer.ranks[i]) : shadeOfStrength(answer.scores[i], low, high));
      word.classList.toggle("cdlm-x-unreached", !answer.reach[i]);
    });
    const scores = signed ? this.words.map((_, i) => Math.abs(change(i))) : answer.scores;
    this.link(from, { scores, reach: answer.reach, counts }, look.arcs, signed ? 0 : low);
    this.lead(from, selection.target, answer);
    this.verdict.textContent = this.verdictOf(answer, selection);
    this.guesses.show(answer.predictions, (span) => this.words[firsts[span[0]] + span[2] - 1], answer.before?.predictions);
    const lost = answer.read.reduce((count, read) => count + !read, 0);
    const unread = lost ? `${lost} grey ${lost === 1 ? "word is" : "words are"} more than it can read` : "";
    const note = signed ? `blue ranks higher than before the ${what}, orange lower` : "";
    this.lost.textContent = [note, unread].filter(Boolean).join("; ");
    this.redrawArcs();
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
    return compared ? `${verdict}, before the ${this.explorer.change} ${percent(earlier)}` : verdict;
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
