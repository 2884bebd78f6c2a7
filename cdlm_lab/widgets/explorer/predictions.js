// What the model puts where words are hidden from it, now and before the last change.

class Predictions {
  constructor(documents) {
    this.documents = documents;
    this.root = element("div", "cdlm-x-predictions");
    this.before = new Map();
  }

  show(panels, showNames) {
    this.root.replaceChildren();
    const some = panels.some((panel) => panel.predictions.length);
    this.root.hidden = !some;
    if (!some) {
      this.before.clear();
      return;
    }
    this.root.append(element("div", "cdlm-x-muted", "What the model puts for the hidden words, most likely first"));
    const now = new Map();
    for (const panel of panels) {
      for (const prediction of panel.predictions) {
        const key = JSON.stringify([panel.name, prediction.span]);
        now.set(key, prediction.truth_probability);
        this.root.append(this.row(panel, prediction, showNames, this.before.get(key)));
      }
    }
    this.before = now;
  }

  row(panel, prediction, showNames, earlier) {
    const row = element("div", "cdlm-x-prediction");
    const truth = element("span", "cdlm-x-truth");
    truth.append(element("bdi", "cdlm-x-word cdlm-x-masked", textOfSpan(this.documents, prediction.span)));
    const share = (p) => `${(100 * p).toFixed(p < 0.01 ? 2 : p < 0.1 ? 1 : 0)}%`;
    const changed = earlier !== undefined && Math.abs(earlier - prediction.truth_probability) > 5e-5;
    truth.append(` ${changed ? `${share(earlier)} → ` : ""}${share(prediction.truth_probability)}`);
    if (changed) truth.classList.add(earlier < prediction.truth_probability ? "cdlm-x-up" : "cdlm-x-down");
    if (showNames) row.append(element("span", "cdlm-x-muted cdlm-x-who", panel.name));
    row.append(truth);
    for (const [word, probability] of prediction.top) {
      const guess = element("span", "cdlm-x-guess");
      const bar = element("i");
      bar.style.width = `${Math.max(1, 100 * probability)}%`;
      guess.append(element("bdi", "", word), element("span", "cdlm-x-muted", ` ${share(probability)}`), bar);
      row.append(guess);
    }
    return row;
  }
}
