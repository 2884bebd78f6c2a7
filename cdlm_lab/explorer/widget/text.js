// Documents as columns of words. Everything that comes from a document is set with textContent: it is never
// read as HTML.

const MODES = ["source", "target", "global", "masked"];

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function floats(base64) {
  return new Float32Array(bytesOf(base64).buffer);
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const sameSpan = (a, b) => Boolean(a && b && a[0] === b[0] && a[1] === b[1] && a[2] === b[2]);
const inSpan = (span, doc, word) => Boolean(span && span[0] === doc && span[1] <= word && word < span[2]);

// What a reader takes for one sign: letters with their marks, emoji of several code points.
const signs = typeof Intl.Segmenter === "function" ? new Intl.Segmenter(undefined, { granularity: "grapheme" }) : null;

// A text, cut between two signs so that at most `longest` UTF-16 units of it are left.
function shortened(text, longest) {
  if (text.length <= longest) return text;
  let end = 0;
  for (const sign of signs ? signs.segment(text) : Array.from(text, (segment) => ({ segment }))) {
    if (end + sign.segment.length > longest) break;
    end += sign.segment.length;
  }
  return `${text.slice(0, end)}…`;
}

// The words of a span as one text, with the spaces that print has.
function textOfSpan(documents, span, longest = 60) {
  const { words, gaps } = documents[span[0]];
  let text = "";
  for (let i = span[1]; i < span[2] && text.length <= longest; i += 1) {
    text += (i > span[1] && gaps[i] === "1" ? " " : "") + words[i];
  }
  return shortened(text, longest);
}

// The innermost mention around a word, else the word alone.
function spanAt(documents, doc, word) {
  let best = [doc, word, word + 1];
  let size = Infinity;
  for (const [start, end] of documents[doc].mentions) {
    if (start <= word && word < end && end - start < size) {
      best = [doc, start, end];
      size = end - start;
    }
  }
  return best;
}

function mentionDepths(doc) {
  const depths = new Array(doc.words.length).fill(0);
  for (const [start, end] of doc.mentions) for (let i = start; i < end; i += 1) depths[i] += 1;
  return depths;
}

// One column: the document's name and its words, as a list of options of which one is in the tab order. Each sentence
// runs in the direction of its script. Returns the word spans in order.
function wordColumn(documents, number) {
  const doc = documents[number];
  const column = element("section", "cdlm-x-column");
  column.setAttribute("aria-label", doc.name);
  const head = element("header", "cdlm-x-column-head");
  const name = element("bdi", "cdlm-x-column-name", doc.name);
  name.title = doc.name;
  head.append(name, element("span", "cdlm-x-muted", `${doc.words.length.toLocaleString("en")} words`));
  const text = element("div", "cdlm-x-text");
  text.setAttribute("role", "listbox");
  text.setAttribute("aria-multiselectable", "true");
  text.setAttribute("aria-label", doc.name);
  text.setAttribute("aria-description", "Arrow keys move from word to word, Enter chooses, T compares.");
  const depths = mentionDepths(doc);
  const words = [];
  for (const [start, end] of doc.sentences) {
    const sentence = element("p", "cdlm-x-sentence");
    sentence.dir = "auto";
    sentence.setAttribute("role", "group");
    for (let i = start; i < end; i += 1) {
      if (i > start && doc.gaps[i] === "1") sentence.append(" ");
      const word = element("span", "cdlm-x-word", doc.words[i]);
      word.dataset.doc = number;
      word.dataset.word = i;
      word.setAttribute("role", "option");
      if (!i) word.tabIndex = 0;
      if (depths[i]) word.classList.add("cdlm-x-mention");
      sentence.append(word);
      words.push(word);
    }
    text.append(sentence);
  }
  column.append(head, text);
  return { column, text, words };
}
