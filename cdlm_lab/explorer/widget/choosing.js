// Above the explorer: which documents, of which models, or a text of one's own. What is opened stays in sight until the
// next is there.

class Chooser {
  constructor(model) {
    this.model = model;
    this.root = element("div", "cdlm-x cdlm-x-chooser");
    this.bar = element("div", "cdlm-x-bar");
    this.own = this.ownText();
    this.refusal = element("div", "cdlm-x-refused");
    this.refusal.setAttribute("role", "alert");
    this.root.append(this.bar, this.own, this.refusal);
    this.draw();
    this.showRefusal();
    model.on("change:opened", () => this.draw());
    model.on("change:refused", () => this.showRefusal());
  }

  get opened() {
    return this.model.get("opened");
  }

  ask(change) {
    this.model.set("opened", { ...this.opened, ...change });
    this.model.save_changes();
  }

  // Why what was wanted last is not there; what is in sight is what was there before.
  showRefusal() {
    const why = this.model.get("refused");
    this.refusal.textContent = why ? `Not opened: ${why}. Below is what was open before.` : "";
  }

  draw() {
    const { examples, models } = this.model.get("choices");
    const { example, documents, models: chosen } = this.opened;
    const drawn = JSON.stringify([example, documents, chosen, Boolean(this.typing)]);
    if (drawn === this.drawn) return; // a list that is open stays open
    this.drawn = drawn;
    const listOpen = this.bar.querySelector("details")?.open;
    const lists = [...examples.map(([key, label]) => [key, label]), ["", "your own text …"]];
    const which = choice("documents", lists, this.typing ? "" : example, (value) => {
      this.typing = value === "";
      this.own.hidden = !this.typing;
      if (value) this.ask({ example: value, documents: [] });
      else this.box.focus();
    });
    which.group.classList.add("cdlm-x-wide");
    const parts = [which.group];
    const of = examples.find(([key]) => key === example)?.[2] ?? [];
    if (of.length > 2) parts.push(this.documentPicker(of, documents, listOpen));
    const first = choice("model", models, chosen[0], (value) => this.ask({ models: [value, ...chosen.slice(1).filter((one) => one !== value)] }));
    const others = models.filter(([key]) => key !== chosen[0]);
    const second = choice("beside it", [["", "none"], ...others], chosen[1] ?? "", (value) => this.ask({ models: value ? [chosen[0], value] : [chosen[0]] }));
    this.bar.replaceChildren(...parts, first.group, second.group);
    this.own.hidden = example !== "" && !this.typing; // what was typed stays where it could not be read
  }

  // Any of the documents of an example; what is ticked is opened when the list is closed.
  documentPicker(of, chosen, open = false) {
    const details = element("details", "cdlm-x-heads");
    details.open = open;
    const summary = element("summary", "", `${chosen.length} of ${of.length} documents`);
    const grid = element("div", "cdlm-x-heads-grid cdlm-x-documents-grid");
    const boxes = of.map(([key, label]) => {
      const row = element("label");
      const box = element("input");
      box.type = "checkbox";
      box.value = key;
      box.checked = chosen.includes(key);
      row.append(box, element("bdi", "", ` ${label}`));
      grid.append(row);
      return box;
    });
    const button = element("button", "", "show these");
    button.type = "button";
    button.addEventListener("click", () => {
      const ticked = boxes.filter((box) => box.checked).map((box) => box.value);
      // those that were there stay where they were
      const kept = chosen.filter((key) => ticked.includes(key));
      details.open = false;
      this.ask({ documents: [...kept, ...ticked.filter((key) => !kept.includes(key))] });
    });
    const enable = () => (button.disabled = !boxes.some((box) => box.checked));
    grid.addEventListener("change", enable);
    grid.append(button);
    details.append(summary, grid);
    const group = element("div", "cdlm-x-control");
    group.append(element("span", "cdlm-x-muted", "shown"), details);
    return group;
  }

  ownText() {
    const form = element("div", "cdlm-x-own");
    this.box = element("textarea");
    this.box.rows = 7;
    this.box.dir = "auto";
    this.box.setAttribute("aria-label", "your own text");
    this.box.placeholder = "== first report ==\nA fire broke out in the old mill on Monday.\n\n== second report ==\nThe blaze at the mill was put out after three hours.";
    this.box.value = this.opened.text;
    this.box.addEventListener("keydown", (event) => event.stopPropagation());
    this.button = element("button", "cdlm-x-main", "Read");
    this.button.type = "button";
    this.button.addEventListener("click", () => this.ask({ example: "", documents: [], text: this.box.value }));
    const hint = element("span", "cdlm-x-muted", "One document below the other, each under a line == its name ==. Mentions may stand between <m> and </m>.");
    const row = element("div", "cdlm-x-bar");
    row.append(this.button, hint);
    form.append(this.box, row);
    return form;
  }
}
