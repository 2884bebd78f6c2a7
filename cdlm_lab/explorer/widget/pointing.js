// Mouse and keyboard on words. Of each document one word is in the tab order; arrows move from there, and with Shift take
// several words.

function listenToWords(explorer) {
  const { stage } = explorer;
  let anchorWord = null; // where a drag, or a span of the keyboard, began
  let last = null;
  let dragging = null; // ends the listening to a drag
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
  const take = (mode) => {
    const span = dragged(last) ?? spanAt(explorer.documents, ...place(anchorWord));
    drop();
    act(explorer, mode, span);
  };
  // A drag may end anywhere, also outside of the widget and of the window.
  const drop = () => {
    dragging?.abort();
    [dragging, anchorWord] = [null, null];
    preview(null, null);
  };
  const release = (event) => {
    const from = anchorWord;
    if (!stage.isConnected) return drop();
    focusWord(from);
    const plain = !event.shiftKey && !event.altKey;
    if (plain && explorer.look.mode === "edit") {
      drop();
      openEditor(explorer, from);
    } else {
      take(event.shiftKey ? "target" : event.altKey ? "global" : explorer.look.mode);
    }
  };
  const move = (event) => {
    if (!event.buttons) return release(event); // let go where nobody was told
    const word = wordOf(event);
    if (word && word !== last && stage.contains(word)) {
      last = word;
      preview(panelOf(word), dragged(word));
    }
  };

  stage.addEventListener("pointerdown", (event) => {
    drop();
    const word = event.button === 0 ? wordOf(event) : null;
    if (!word) return;
    event.preventDefault();
    [anchorWord, last, dragging] = [word, word, new AbortController()];
    const everywhere = { capture: true, signal: dragging.signal };
    window.addEventListener("pointermove", move, everywhere);
    window.addEventListener("pointerup", release, everywhere);
    window.addEventListener("pointercancel", drop, everywhere);
  });
  stage.addEventListener("pointerover", (event) => {
    const word = wordOf(event);
    if (word && !dragging) showTip(explorer, panelOf(word), word);
    else explorer.tip.hidden = true;
  });
  stage.addEventListener("pointerleave", () => (explorer.tip.hidden = true));
  stage.addEventListener("keydown", (event) => {
    const word = wordOf(event);
    if (!word || dragging || event.ctrlKey || event.metaKey || event.altKey) return;
    const panel = panelOf(word);
    const next = wordByKey(panel, word, event.key);
    const mode = { Enter: "source", " ": "source", t: "target", g: "global", m: explorer.options.predicts ? "masked" : null }[event.key];
    if (next) {
      anchorWord = event.shiftKey ? anchorWord ?? word : null;
      last = next;
      focusWord(next);
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
      preview(panel, anchorWord && dragged(next));
    } else if (mode) {
      if (!anchorWord || last !== word) anchorWord = last = word;
      take(mode);
    } else if (event.key === "e") {
      drop();
      openEditor(explorer, word);
    } else if (event.key === "Escape") {
      if (anchorWord) drop();
      else explorer.ask({ target: null });
    } else {
      return;
    }
    event.preventDefault(); // and the notebook does not take it for a command
    event.stopPropagation();
  });
  stage.addEventListener("focusin", (event) => {
    const word = wordOf(event);
    if (word) showTip(explorer, panelOf(word), word);
  });
}

// Of each document one word is in the tab order: the one that had the focus last.
function focusWord(word) {
  const text = word.closest(".cdlm-x-text");
  for (const node of text.querySelectorAll('.cdlm-x-word[tabindex="0"]')) node.removeAttribute("tabindex");
  word.tabIndex = 0;
  word.focus({ preventScroll: true });
}

// The word to which a key leads: to the left and right as they are read, up and down to the nearest of the next line.
function wordByKey(panel, word, key) {
  const { words } = panel;
  const index = words.indexOf(word);
  const [doc, number] = [word.dataset.doc, Number(word.dataset.word)];
  const forward = getComputedStyle(word).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  if (key === "ArrowLeft" || key === "ArrowRight") return words[index + (key === forward ? 1 : -1)] ?? word;
  if (key === "Home") return words[index - number];
  if (key === "End") return words.findLast((one) => one.dataset.doc === doc);
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const step = key === "ArrowDown" ? 1 : -1;
  const middle = (box) => box.left + box.width / 2;
  const here = word.getBoundingClientRect();
  let [best, line] = [null, null];
  for (let i = index + step; words[i]?.dataset.doc === doc; i += step) {
    const there = words[i].getBoundingClientRect();
    if (Math.abs(there.top - here.top) < here.height / 2) continue;
    line ??= there.top;
    if (Math.abs(there.top - line) > here.height / 2) break;
    const off = Math.abs(middle(there) - middle(here));
    if (best === null || off < best.off) best = { word: words[i], off };
  }
  return best?.word ?? words[index + step] ?? word;
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
  else if (!answer.reach[i]) lines.push(unreached(explorer.selection.cut, "from the chosen words"));
  else if (!counts[i]) lines.push(`score ${answer.scores[i].toPrecision(4)}; punctuation is not ranked`);
  else {
    lines.push(`stronger than ${percent(answer.ranks[i])} of its document`);
    lines.push(`score ${answer.scores[i].toPrecision(4)}`);
  }
  if (answer.before) lines.push(`before the ${explorer.change} stronger than ${percent(answer.before.ranks[i])}`);
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
