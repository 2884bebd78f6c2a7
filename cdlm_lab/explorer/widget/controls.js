// The bar above the documents: what a click does, which part of the model is read, how it is shown.

function choice(label, options, value, onChange) {
  const group = element("label", "cdlm-x-control");
  group.append(element("span", "cdlm-x-muted", label));
  const select = element("select");
  select.setAttribute("aria-label", label);
  for (const [name, text] of options) {
    const option = element("option", "", text);
    option.value = name;
    select.append(option);
  }
  select.value = value;
  select.addEventListener("change", () => onChange(select.value));
  group.append(select);
  return { group, select };
}

function segments(label, options, value, onChange) {
  const group = element("div", "cdlm-x-control");
  group.setAttribute("role", "radiogroup");
  group.setAttribute("aria-label", label);
  group.append(element("span", "cdlm-x-muted", label));
  const row = element("div", "cdlm-x-segments");
  const buttons = options.map(([name, text, title]) => {
    const button = element("button", "", text);
    button.type = "button";
    button.title = title || text;
    button.dataset.name = name;
    button.setAttribute("role", "radio");
    button.addEventListener("click", () => {
      show(name);
      onChange(name);
    });
    row.append(button);
    return button;
  });
  const show = (name) => {
    for (const button of buttons) button.setAttribute("aria-checked", String(button.dataset.name === name));
  };
  show(value);
  group.append(row);
  return { group, show };
}

// Which heads: all of them, or any that are ticked.
function headPicker(count, chosen, onChange) {
  const details = element("details", "cdlm-x-heads");
  const summary = element("summary");
  const grid = element("div", "cdlm-x-heads-grid");
  let picked = new Set(chosen ?? []);
  const name = () => {
    summary.textContent =
      picked.size === 0 ? `all ${count} heads` : picked.size === 1 ? `head ${[...picked][0] + 1}` : `${picked.size} heads`;
  };
  const all = element("button", "", "all heads");
  all.type = "button";
  const boxes = Array.from({ length: count }, (_, head) => {
    const label = element("label");
    const box = element("input");
    box.type = "checkbox";
    box.setAttribute("aria-label", `head ${head + 1}`);
    box.checked = picked.has(head);
    box.addEventListener("change", () => {
      if (box.checked) picked.add(head);
      else picked.delete(head);
      name();
      onChange(picked.size ? [...picked].sort((a, b) => a - b) : null);
    });
    label.append(box, ` ${head + 1}`);
    grid.append(label);
    return box;
  });
  all.addEventListener("click", () => {
    picked = new Set();
    for (const box of boxes) box.checked = false;
    name();
    onChange(null);
  });
  grid.append(all);
  details.append(summary, grid);
  name();
  const group = element("div", "cdlm-x-control");
  group.append(element("span", "cdlm-x-muted", "heads"), details);
  return group;
}

function legend() {
  const node = element("div", "cdlm-x-legend");
  const scale = element("span", "cdlm-x-scale");
  for (const rank of [82, 88, 93, 97, 100]) {
    const step = element("i");
    paint(step, shadeOfRank(rank));
    scale.append(step);
  }
  const sample = (className, text) => {
    const item = element("span", "cdlm-x-key");
    item.append(element("span", `cdlm-x-word ${className}`, "word"), ` ${text}`);
    return item;
  };
  const shades = element("span", "cdlm-x-key");
  shades.append(scale, " top 20% … top 1% of its document");
  node.append(
    sample("cdlm-x-source", "chosen"),
    sample("cdlm-x-target", "compared"),
    sample("cdlm-x-global", "sees everything"),
    sample("cdlm-x-masked", "hidden from the model"),
    sample("cdlm-x-edited", "rewritten"),
    sample("cdlm-x-mention", "mention"),
    shades,
  );
  return node;
}
