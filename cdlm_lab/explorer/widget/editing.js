// Writing another word in place of one, in a box over it. Enter or a click elsewhere takes it, Escape leaves it; the
// word of before, or nothing, takes the rewriting back.

const LONGEST_EDIT = 60;

// The documents as they are rewritten.
function withEdits(documents, edits) {
  if (!edits?.length) return documents;
  const changed = documents.map((doc) => ({ ...doc, words: [...doc.words] }));
  for (const [doc, word, text] of edits) changed[doc].words[word] = text;
  return changed;
}

function openEditor(explorer, node) {
  const [doc, word] = [Number(node.dataset.doc), Number(node.dataset.word)];
  const before = explorer.documents[doc].words[word];
  const { edits } = explorer.selection;
  const now = edits.find((one) => one[0] === doc && one[1] === word)?.[2] ?? before;
  const box = element("input", "cdlm-x-editor");
  box.value = now;
  box.maxLength = LONGEST_EDIT;
  box.dir = "auto";
  box.setAttribute("aria-label", `in place of ${before}`);
  const frame = explorer.root.getBoundingClientRect();
  const at = node.getBoundingClientRect();
  const width = Math.max(at.width + 30, 130);
  box.style.width = `${width}px`;
  box.style.left = `${Math.max(0, Math.min(at.left - frame.left - 6, frame.width - width))}px`;
  box.style.top = `${at.top - frame.top - 4}px`;
  let open = true;
  const close = (take) => {
    if (!open) return;
    open = false;
    box.remove();
    // neither control characters nor such that turn the direction; joiners belong to words and emoji
    const text = box.value.replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, " ").replace(/\s+/g, " ").trim() || before;
    if (!take || text === now) return;
    const others = edits.filter((one) => one[0] !== doc || one[1] !== word);
    explorer.ask({ edits: text === before ? others : [...others, [doc, word, text]] });
  };
  box.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the notebook does not take it for a command
    if (event.key !== "Enter" && event.key !== "Escape") return;
    close(event.key === "Enter");
    if (node.isConnected) focusWord(node);
  });
  box.addEventListener("blur", () => close(true));
  explorer.root.append(box);
  box.focus();
  box.select();
}

// What is rewritten, and a button that takes it back.
function rewritten(explorer) {
  const { edits } = explorer.selection;
  const line = element("span", "cdlm-x-rewritten");
  if (!edits.length) return line;
  line.append("rewritten: ");
  edits.forEach(([doc, word, text], i) => {
    if (i) line.append(", ");
    line.append(element("bdi", "cdlm-x-old", explorer.documents[doc].words[word]), " → ", element("bdi", "cdlm-x-edited", text));
  });
  const button = element("button", "", "take back");
  button.type = "button";
  button.addEventListener("click", () => explorer.ask({ edits: [] }));
  line.append(" ", button);
  return line;
}
