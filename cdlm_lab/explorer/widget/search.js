// A box that finds words in all documents, marks them in every panel, and jumps from one to the next.

// Without case and accents, so that "Zürich" is found as "zurich".
const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

// Spans of the words in which a text stands; it may go over several words.
function placesOf(documents, text) {
  const wanted = folded(text).trim().replace(/\s+/g, " ");
  const places = [];
  if (!wanted) return places;
  documents.forEach(({ words, gaps }, doc) => {
    const starts = [];
    let joined = "";
    words.forEach((word, i) => {
      if (i && gaps[i] === "1") joined += " ";
      starts.push(joined.length);
      joined += folded(word);
    });
    let word = 0;
    for (let at = joined.indexOf(wanted); at >= 0; at = joined.indexOf(wanted, at + wanted.length)) {
      while (word + 1 < words.length && starts[word + 1] <= at) word += 1;
      let end = word + 1;
      while (end < words.length && starts[end] < at + wanted.length) end += 1;
      const last = places[places.length - 1];
      if (!(last && last[0] === doc && last[1] === word)) places.push([doc, word, end]);
    }
  });
  return places;
}

class Search {
  constructor(explorer) {
    this.explorer = explorer;
    this.places = [];
    this.at = 0;
    this.root = element("div", "cdlm-x-control cdlm-x-search");
    const row = element("div", "cdlm-x-segments");
    this.box = element("input");
    this.box.type = "search";
    this.box.dir = "auto";
    this.box.placeholder = "words";
    this.box.setAttribute("aria-label", "find words");
    this.box.addEventListener("input", () => this.find());
    this.box.addEventListener("keydown", (event) => {
      event.stopPropagation(); // the notebook does not take it for a command
      if (event.key === "Enter") this.jump(event.shiftKey ? -1 : 1);
    });
    row.append(this.box, ...[["↑", "previous", -1], ["↓", "next", 1]].map(([sign, name, step]) => {
      const button = element("button", "", sign);
      button.type = "button";
      button.title = name;
      button.setAttribute("aria-label", `${name} place`);
      button.addEventListener("click", () => this.jump(step));
      return button;
    }));
    this.label = element("span", "cdlm-x-muted", "find");
    this.label.setAttribute("aria-live", "polite");
    this.root.append(this.label, row);
  }

  find() {
    this.places = placesOf(withEdits(this.explorer.documents, this.explorer.selection.edits), this.box.value);
    this.at = 0;
    this.mark();
    this.reveal();
  }

  jump(step) {
    const count = this.places.length;
    this.at = count ? (this.at + step + count) % count : 0;
    this.mark();
    this.reveal();
  }

  // In the panels that are there now.
  mark() {
    const { explorer, places, at } = this;
    for (const node of explorer.stage.querySelectorAll(".cdlm-x-hit")) node.classList.remove("cdlm-x-hit", "cdlm-x-here");
    for (const panel of explorer.panels) {
      places.forEach(([doc, start, end], i) => {
        for (let word = start; word < end; word += 1) {
          panel.words?.[explorer.firsts[doc] + word].classList.add("cdlm-x-hit", ...(i === at ? ["cdlm-x-here"] : []));
        }
      });
    }
    const count = places.length;
    this.label.textContent = !this.box.value.trim() ? "find" : count ? `${at + 1} of ${count}` : "not there";
  }

  reveal() {
    for (const panel of this.explorer.panels) panel.reveal?.(this.places[this.at]);
  }
}
