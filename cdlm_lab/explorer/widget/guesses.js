// What a model puts in the place of hidden words, written where they stand: how likely the true words are, before the
// rewriting or the last change and now, and its best guesses.

const share = (p) => (p < 5e-5 ? "< 0.01%" : `${(100 * p).toFixed(p < 0.01 ? 2 : p < 0.1 ? 1 : 0)}%`);

class Guesses {
  constructor() {
    this.before = new Map();
    this.notes = [];
  }

  // `lastWord(span)` is the node behind which the note of a span stands.
  show(predictions, lastWord, unedited) {
    for (const note of this.notes) note.remove();
    if (unedited) this.before = new Map(unedited.map((one) => [JSON.stringify(one.span), one.truth_probability]));
    const now = new Map(predictions.map((one) => [JSON.stringify(one.span), one.truth_probability]));
    this.notes = predictions.map((one) => {
      const note = this.note(one, this.before.get(JSON.stringify(one.span)));
      lastWord(one.span).after(note);
      return note;
    });
    this.before = now;
  }

  note(prediction, earlier) {
    const { truth_probability: truth, top, pieces } = prediction;
    const note = element("span", "cdlm-x-note");
    note.title = `Left: how likely the hidden words are${pieces > 1 ? `, all ${pieces} pieces of them` : ""}. Then the best guesses of as many pieces.`;
    const changed = earlier !== undefined && Math.abs(earlier - truth) > 5e-5;
    const probability = element("b", "cdlm-x-truth", `${changed ? `${share(earlier)} → ` : ""}${share(truth)}`);
    if (changed) probability.classList.add(earlier < truth ? "cdlm-x-up" : "cdlm-x-down");
    const shown = top.filter(([, p], i) => i < 2 || p >= 0.005);
    note.append(probability, ...shown.map(([word, p]) => this.guess(word, p)));
    return note;
  }

  guess(word, probability) {
    const guess = element("span", "cdlm-x-guess");
    const bar = element("i");
    bar.style.width = `${Math.max(1, 100 * probability)}%`;
    guess.append(element("bdi", "", word), element("span", "cdlm-x-muted", ` ${share(probability)}`), bar);
    return guess;
  }
}
