/** A text with mentions between <m> and </m>: {text, marks}, marks as half-open spans of the text. */
export function parse(value) {
  const marks = [], opened = [];
  let text = "";
  for (const piece of value.split(/(<\/?m>)/i)) {
    const tag = piece.toLowerCase();
    if (tag === "<m>") opened.push(text.length);
    else if (tag !== "</m>") text += piece;
    else if (opened.length) marks.push([opened.pop(), text.length]);
  }
  return { text, marks };
}

/** The value with its marks, the inverse of `parse`. */
export function serialise({ text, marks }) {
  let value = "";
  for (let at = 0; at <= text.length; at++) {
    value += "</m>".repeat(marks.filter(([, end]) => end === at).length);
    value += "<m>".repeat(marks.filter(([start]) => start === at).length) + (text[at] ?? "");
  }
  return value;
}

/** The marks with the words from `start` to `end` as one more; unchanged if it crosses another, or a blank line. */
export function added({ text, marks }, start, end) {
  const word = (at) => /[\p{L}\p{N}]/u.test(text[at] ?? "");
  while (start < end && /\s/.test(text[start])) start++;
  while (end > start && /\s/.test(text[end - 1])) end--;
  if (start >= end || /\n\s*\n|==/.test(text.slice(start, end))) return marks;
  while (word(start) && word(start - 1)) start--;
  while (word(end) && word(end - 1)) end++;
  const crossed = ([a, b]) => (a < start && start < b && b < end) || (start < a && a < end && end < b);
  const there = ([a, b]) => a === start && b === end;
  return marks.some((one) => crossed(one) || there(one)) ? marks : [...marks, [start, end]];
}

function pieces({ text, marks }) {
  const cuts = [...new Set([0, text.length, ...marks.flat()])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, number) => {
    const inside = marks.filter(([a, b]) => a <= cuts[number] && end <= b);
    return [cuts[number], end, inside.sort((a, b) => a[1] - a[0] - (b[1] - b[0]))[0]];
  });
}

function render({ model, el }) {
  const shown = document.createElement("div"), typed = document.createElement("textarea");
  const toggle = document.createElement("button"), hint = document.createElement("span");
  toggle.className = "cdlm-marks-toggle";
  shown.className = "cdlm-marks";
  typed.rows = 12;
  typed.hidden = true;
  hint.textContent = " Select words to mark a mention, click one to remove it.";
  const save = (value) => { model.set("value", value); model.save_changes(); };
  const draw = () => {
    const state = parse(model.get("value"));
    typed.value = model.get("value");
    toggle.textContent = typed.hidden ? "edit the text" : "back to clicking";
    shown.replaceChildren(...pieces(state).map(([start, end, mark]) => {
      const piece = document.createElement(mark ? "mark" : "span");
      piece.textContent = state.text.slice(start, end);
      piece.dataset.start = start;
      if (mark) {
        const remove = () => {
          if (getSelection().isCollapsed) save(serialise({ ...state, marks: state.marks.filter((m) => m !== mark) }));
        };
        Object.assign(piece, { tabIndex: 0, title: "click to remove", onclick: remove });
        piece.onkeydown = (event) => { if (["Enter", "Delete"].includes(event.key)) remove(); };
      }
      return piece;
    }));
  };
  const place = (node, offset) => {
    const piece = (node.nodeType === 3 ? node.parentElement : node).closest?.("[data-start]");
    return piece && shown.contains(piece) ? Number(piece.dataset.start) + offset : -1;
  };
  shown.onmouseup = () => {
    const chosen = getSelection();
    if (chosen.isCollapsed) return;
    const ends = [place(chosen.anchorNode, chosen.anchorOffset), place(chosen.focusNode, chosen.focusOffset)];
    chosen.removeAllRanges();
    const state = parse(model.get("value"));
    if (Math.min(...ends) >= 0) save(serialise({ ...state, marks: added(state, Math.min(...ends), Math.max(...ends)) }));
  };
  toggle.onclick = () => { typed.hidden = !typed.hidden; shown.hidden = !typed.hidden; draw(); };
  typed.onchange = () => save(typed.value);
  model.on("change:value", draw);
  el.replaceChildren(toggle, hint, shown, typed);
  draw();
}

export default { render };
