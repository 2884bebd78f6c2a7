// In an exported page there is no kernel: what was asked before the export is answered from the page itself.

class StoredModel {
  constructor(stored) {
    this.values = { ...stored, message: "" };
    this.listeners = {};
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    this.values[name] = value;
    if (name === "selection") this.look();
  }

  save_changes() {}

  send() {}

  on(name, listener) {
    (this.listeners[name] ??= []).push(listener);
  }

  look() {
    const wanted = StoredModel.key(this.values.selection);
    const found = this.values.answers.find(([selection]) => StoredModel.key(selection) === wanted);
    this.values.message = "";
    if (found) {
      const { target } = this.values.selection;
      this.values.answer = { ...found[1], panels: found[1].panels.map((panel) => this.ranked(panel, target)) };
    } else {
      this.values.message =
        "This page holds no answer for that. It can be asked in the notebook, with the model at hand.";
    }
    for (const name of ["change:answer", "change:message"]) for (const one of this.listeners[name] ?? []) one();
  }

  // The rank of a target, which needs no model: its mean score among the other words of its document.
  ranked(panel, target) {
    if (!panel) return panel;
    const before = this.ranked(panel.before, target);
    if (!target) return { ...panel, before, target_rank: null };
    const scores = floats(panel.scores);
    const documents = this.values.documents;
    let first = 0;
    for (let d = 0; d < target[0]; d += 1) first += documents[d].words.length;
    const doc = documents[target[0]];
    let sum = 0;
    for (let i = target[1]; i < target[2]; i += 1) sum += scores[first + i];
    const mean = sum / (target[2] - target[1]);
    let [below, equal, others] = [0, 0, 0];
    const { source } = this.values.selection;
    doc.words.forEach((_, i) => {
      if (doc.counts[i] !== "1" || inSpan(target, target[0], i) || inSpan(source, target[0], i)) return;
      others += 1;
      below += scores[first + i] < mean;
      equal += scores[first + i] === mean;
    });
    return { ...panel, before, target_rank: others ? (100 * (below + equal / 2)) / others : null };
  }

  static key(selection) {
    return JSON.stringify([
      selection.source,
      selection.source_global,
      selection.extra_global,
      selection.masked,
      selection.layer,
      selection.heads,
      selection.direction,
      selection.reduce,
      selection.edits,
      selection.cut,
    ]);
  }
}

function renderStored(id) {
  const stored = JSON.parse(document.getElementById(id).textContent);
  render({ model: new StoredModel(stored), el: document.getElementById("explorer") });
}
