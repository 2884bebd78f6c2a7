// The explorer. `model` is anywidget's, or a stand-in with the same four functions in an exported page.

class Explorer {
  constructor(model, el, look = { mode: "source", shade: "rank", arcs: 8, compare: "difference" }) {
    this.model = model;
    this.shown = model.get("shown");
    this.listeners = [];
    this.documents = model.get("documents");
    this.options = model.get("options");
    this.firsts = [0];
    for (const doc of this.documents) this.firsts.push(this.firsts.at(-1) + doc.words.length);
    this.counts = Uint8Array.from(this.documents.map((doc) => doc.counts).join(""), Number);
    this.look = look;
    this.root = element("div", "cdlm-x");
    this.root.tabIndex = -1;
    this.status = element("div", "cdlm-x-status");
    this.status.setAttribute("role", "status");
    this.stage = element("div", "cdlm-x-stage");
    this.tip = element("div", "cdlm-x-tip");
    this.tip.hidden = true;
    this.panels = [];
    this.sides = []; // of a model's word panels
    this.makeControls();
    const note = element("div", "cdlm-x-muted cdlm-x-unread", this.options.note);
    this.root.append(this.bar, this.status, note, this.stage, legend(), this.tip);
    el.append(this.root);
    this.listen();
    this.showPanels();
    this.observer = new ResizeObserver(() => this.panels.forEach((panel) => panel.redrawArcs()));
    this.observer.observe(this.stage);
  }

  get selection() {
    return this.model.get("selection");
  }

  get answer() {
    return this.model.get("answer");
  }

  ask(change) {
    this.model.set("selection", { ...this.selection, ...change });
    this.model.save_changes();
    this.panels.forEach((panel) => panel.mark(this.selection));
  }

  makeControls() {
    const { selection, options } = this;
    this.bar = element("div", "cdlm-x-bar");
    const mode = segments(
      "a click",
      [
        ["source", "chooses", "look from here (Enter)"],
        ["target", "compares", "how strongly is this looked at? (T)"],
        ["global", "lets see everything", "what if these words saw the whole text? (G)"],
        ...(options.predicts ? [["masked", "hides", "what would the model put here? (M)"]] : []),
        ["edit", "rewrites", "what if another word stood here? (E)"],
      ],
      this.look.mode,
      (name) => (this.look.mode = name),
    );
    const layers = Array.from({ length: options.layers }, (_, i) => [
      String(i),
      i + 1 === options.layers ? `last (${i + 1})` : String(i + 1),
    ]).reverse();
    const layer = choice("layer", layers, String(selection.layer), (value) => this.ask({ layer: Number(value) }));
    const heads = headPicker(options.heads, selection.heads, (value) => this.ask({ heads: value }));
    const direction = choice(
      "direction",
      [["both", "both ways"], ["from", "chosen → others"], ["to", "others → chosen"]],
      selection.direction,
      (value) => this.ask({ direction: value }),
    );
    const reduce = choice("heads and parts of words", [["mean", "averaged"], ["max", "the strongest"]], selection.reduce, (value) =>
      this.ask({ reduce: value }),
    );
    const shade = choice("shade", [["rank", "rank in its document"], ["strength", "strength"]], this.look.shade, (value) => {
      this.look.shade = value;
      this.showAnswer();
    });
    const compare = choice("before and after", [["difference", "the difference"], ["both", "side by side"]], this.look.compare, (value) => {
      this.look.compare = value;
      this.showAnswer();
    });
    this.compareControl = compare.group;
    const cuts = [
      ["", "as learned"],
      ["documents", "cut"],
      ["layer", "cut in this layer"],
      ["below", "cut in the layers below"],
      ["random", "as much cut within documents"],
    ];
    const cut = choice("attention between documents", cuts, selection.cut, (value) => {
      if (value && !this.selection.cut) compare.select.value = this.look.compare = "both";
      this.ask({ cut: value });
    });
    cut.group.hidden = !options.cuts;
    const arcs = choice("curves", [["0", "none"], ["3", "3"], ["8", "8"], ["20", "20"]], String(this.look.arcs), (value) => {
      this.look.arcs = Number(value);
      this.showAnswer();
    });
    const sees = element("label", "cdlm-x-control cdlm-x-check");
    this.seesBox = element("input");
    this.seesBox.type = "checkbox";
    this.seesBox.checked = selection.source_global;
    this.seesBox.addEventListener("change", () => this.ask({ source_global: this.seesBox.checked }));
    sees.append(this.seesBox, " chosen words see everything");
    this.search = new Search(this);
    const exports = element("div", "cdlm-x-exports");
    for (const [what, text, title] of [
      ["html", "save as page", "a file that opens in any browser, without a notebook"],
      ["png", "save as picture", "what is in sight now"],
    ]) {
      if (what === "html" && !options.exports) continue;
      const button = element("button", "", text);
      button.type = "button";
      button.title = title;
      button.addEventListener("click", () => (what === "png" ? this.savePicture() : this.model.send({ type: "export" })));
      exports.append(button);
    }
    this.bar.append(this.search.root, mode.group, layer.group, heads, direction.group, reduce.group, shade.group, arcs.group);
    this.bar.append(cut.group, compare.group, sees, exports);
  }

  // What the answer is compared with that of before; "" = nothing was changed.
  get change() {
    const { edits, cut } = this.selection;
    return edits.length && cut ? "changes" : cut ? "cut" : edits.length ? "rewriting" : "";
  }

  savePicture() {
    savePicture(this).catch((error) => (this.status.textContent = `The picture could not be drawn: ${error.message}`));
  }

  listen() {
    this.on("change:answer", () => this.showAnswer());
    this.on("change:message", () => this.showStatus());
    this.on("change:selection", () => this.panels.forEach((panel) => panel.mark(this.selection)));
    this.on("msg:custom", (message) => {
      if (message.type === "export") saveText(message.name, message.html);
    });
    listenToWords(this);
  }

  // Not while other documents come in, which a next explorer shows.
  on(name, listener) {
    const guarded = (...values) => {
      if (this.model.get("shown") === this.shown) listener(...values);
    };
    this.model.on(name, guarded);
    this.listeners.push([name, guarded]);
  }

  close() {
    this.observer.disconnect();
    for (const [name, listener] of this.listeners) this.model.off(name, listener);
    this.root.remove();
  }

  showPanels() {
    this.sides = this.wantedSides();
    this.tip.hidden = true;
    this.panels = this.options.models.flatMap((_, number) => this.sides.map((side) => new Panel(this, number, side)));
    this.panels.forEach((panel) => panel.mark(this.selection));
    this.search.mark();
    this.stage.replaceChildren(...this.panels.map((panel) => panel.root));
    this.showAnswer();
    for (const panel of this.panels) panel.reveal(this.selection.source);
  }

  // Of each model one panel, or one from before the change and one from after it.
  wantedSides() {
    return this.look.compare === "both" && this.change ? ["after", "before"] : [""];
  }

  showAnswer() {
    this.compareControl.hidden = !this.change;
    if (this.wantedSides().length !== this.sides.length) return this.showPanels();
    const panels = this.answer?.panels.map(unpacked);
    if (panels) this.panels.forEach((panel) => panel.show(panels, this.selection, this.look));
    return this.showStatus();
  }

  showStatus() {
    const { source, target, edits } = this.selection;
    const documents = withEdits(this.documents, edits);
    const message = this.model.get("message");
    this.status.replaceChildren();
    this.status.classList.toggle("cdlm-x-busy", Boolean(message));
    if (message) {
      this.status.textContent = message;
    } else if (!source) {
      this.status.textContent = "Click a word, or drag over several, to see where the model looks from there. By keyboard: Tab to the text, arrow keys, Enter.";
    } else {
      const chip = (className, span) => element("bdi", `cdlm-x-word ${className}`, textOfSpan(documents, span));
      const name = (span) => element("bdi", "cdlm-x-name", this.documents[span[0]].name);
      this.status.append("from ", chip("cdlm-x-source", source), " in ", name(source));
      if (target) this.status.append(" to ", chip("cdlm-x-target", target), " in ", name(target));
      else this.status.append(" — shift-click a word of another document to compare it");
    }
    if (!message) this.status.append(rewritten(this));
  }

  // What there is to say of the compared words, in a sentence.
  verdict(answer, { source, target }) {
    if (!source || !target || answer.target_rank === null || answer.target_rank === undefined) return "";
    const first = this.firsts[target[0]];
    for (let i = target[1]; i < target[2]; i += 1) {
      if (answer.reach[first + i]) return `stronger than ${percent(answer.target_rank)} of its document`;
    }
    if (!answer.read[first + target[1]]) return UNREAD;
    return unreached(this.selection.cut, "apart");
  }
}

function unpacked(panel) {
  return panel && {
    ...panel,
    scores: floats(panel.scores),
    ranks: floats(panel.ranks),
    reach: bytesOf(panel.reach),
    read: bytesOf(panel.read),
    before: unpacked(panel.before),
  };
}

function render({ model, el }) {
  const host = element("div");
  if (model.get("choices")) el.append(new Chooser(model).root);
  el.append(host);
  let explorer = new Explorer(model, host);
  const renew = () => {
    explorer.close();
    explorer = new Explorer(model, host, explorer.look);
  };
  model.on("change:shown", renew);
  return () => {
    model.off?.("change:shown", renew);
    explorer.close();
  };
}
