// Mouse and keyboard on words. One word at a time is in the tab order; arrows move from there.

function listenToWords(explorer) {
  const { stage } = explorer;
  let anchorWord = null;
  let last = null;
  const wordOf = (event) => event.target.closest?.(".cdlm-x-word[data-word]");
  const place = (node) => [Number(node.dataset.doc), Number(node.dataset.word)];
  const preview = (panel, span) => {
    for (const node of stage.querySelectorAll(".cdlm-x-pending")) node.classList.remove("cdlm-x-pending");
    if (!span) return;
    const first = explorer.firsts[span[0]];
    for (let i = span[1]; i < span[2]; i += 1) panel.words[first + i].classList.add("cdlm-x-pending");
  };
  const panelOf = (node) => explorer.panels.find((panel) => panel.root.contains(node));
  const dragged = (to) => {
    const [doc, a] = place(anchorWord);
    const [otherDoc, b] = place(to);
    return otherDoc === doc && a !== b ? [doc, Math.min(a, b), Math.max(a, b) + 1] : null;
  };

  stage.addEventListener("pointerdown", (event) => {
    anchorWord = event.button === 0 ? wordOf(event) : null;
    last = anchorWord;
    if (anchorWord) event.preventDefault();
  });
  stage.addEventListener("pointermove", (event) => {
    const word = wordOf(event);
    if (anchorWord && word && word !== last) {
      last = word;
      preview(panelOf(word), dragged(word));
    }
  });
  stage.addEventListener("pointerup", (event) => {
    if (!anchorWord) return;
    const to = wordOf(event) ?? last;
    const span = dragged(to) ?? spanAt(explorer.documents, ...place(anchorWord));
    preview(null, null);
    focusWord(anchorWord);
    const plain = !event.shiftKey && !event.altKey;
    if (plain && explorer.look.mode === "edit") openEditor(explorer, anchorWord);
    else act(explorer, event.shiftKey ? "target" : event.altKey ? "global" : explorer.look.mode, span);
    anchorWord = null;
  });
  stage.addEventListener("pointerover", (event) => {
    const word = wordOf(event);
    if (word && !anchorWord) showTip(explorer, panelOf(word), word);
    else explorer.tip.hidden = true;
  });
  stage.addEventListener("pointerleave", () => (explorer.tip.hidden = true));
  stage.addEventListener("keydown", (event) => {
    const word = wordOf(event);
    if (word) onKey(explorer, panelOf(word), word, event);
  });
  stage.addEventListener("focusin", (event) => {
    const word = wordOf(event);
    if (word) showTip(explorer, panelOf(word), word);
  });
}

function focusWord(word) {
  const columns = word.closest(".cdlm-x-columns");
  for (const node of columns.querySelectorAll('.cdlm-x-word[tabindex="0"]')) node.removeAttribute("tabindex");
  word.tabIndex = 0;
  word.focus({ preventScroll: true });
}

function onKey(explorer, panel, word, event) {
  const index = panel.words.indexOf(word);
  const modes = { Enter: "source", " ": "source", t: "target", g: "global", m: explorer.options.predicts ? "masked" : null };
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 12, ArrowUp: -12 };
  if (event.ctrlKey || event.metaKey) return;
  if (event.key in steps) {
    const next = panel.words[Math.min(Math.max(index + steps[event.key], 0), panel.words.length - 1)];
    focusWord(next);
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  } else if (modes[event.key]) {
    act(explorer, modes[event.key], spanAt(explorer.documents, Number(word.dataset.doc), Number(word.dataset.word)));
  } else if (event.key === "e") {
    openEditor(explorer, word);
  } else if (event.key === "Escape") {
    explorer.ask({ target: null });
  } else {
    return;
  }
  event.preventDefault(); // and the notebook does not take it for a command
  event.stopPropagation();
}

// Choosing and comparing replace; seeing everything and hiding are switched on and off.
function act(explorer, mode, span) {
  const { selection } = explorer;
  if (mode === "source") {
    explorer.ask({ source: span, target: sameSpan(selection.target, span) ? null : selection.target });
  } else if (mode === "target") {
    explorer.ask({ target: sameSpan(selection.target, span) ? null : span });
  } else {
    const name = mode === "global" ? "extra_global" : "masked";
    const others = selection[name].filter((one) => !sameSpan(one, span));
    // where nothing is chosen, hidden words are: where does the model look for them?
    const source = selection.source ?? (mode === "masked" ? span : null);
    explorer.ask({ source, [name]: others.length < selection[name].length ? others : [...others, span] });
  }
}

function showTip(explorer, panel, word) {
  const { tip, documents, firsts, counts } = explorer;
  const answer = panel?.answer;
  if (!answer) return;
  const [doc, number] = [Number(word.dataset.doc), Number(word.dataset.word)];
  const i = firsts[doc] + number;
  tip.replaceChildren(element("b", "", word.textContent));
  const mention = documents[doc].mentions.find(([start, end]) => start <= number && number < end);
  const lines = [];
  if (panel.isSource(i, explorer.selection.source)) lines.push("chosen");
  else if (!answer.read[i]) lines.push(UNREAD);
  else if (!answer.reach[i]) lines.push(`${FAR} from the chosen words, and neither sees everything`);
  else if (!counts[i]) lines.push(`score ${answer.scores[i].toPrecision(4)}; punctuation is not ranked`);
  else {
    lines.push(`stronger than ${percent(answer.ranks[i])} of its document`);
    lines.push(`score ${answer.scores[i].toPrecision(4)}`);
  }
  if (answer.attributed) lines.push(`${answer.attributed.words[i].toFixed(3)} for the hidden word (natural logarithm)`);
  if (answer.before) lines.push(`before the rewriting stronger than ${percent(answer.before.ranks[i])}`);
  if (word.classList.contains("cdlm-x-edited")) lines.push(`in place of ${documents[doc].words[number]}`);
  if (mention?.[2]) lines.push(`mention of ${mention[2]}`);
  for (const line of lines) tip.append(element("div", "", line));
  tip.hidden = false;
  const box = word.getBoundingClientRect();
  const frame = explorer.root.getBoundingClientRect();
  const left = Math.min(box.left - frame.left, frame.width - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(4, left)}px`;
  const above = box.top - frame.top - tip.offsetHeight - 6;
  tip.style.top = `${above > 0 ? above : box.bottom - frame.top + 6}px`;
}
