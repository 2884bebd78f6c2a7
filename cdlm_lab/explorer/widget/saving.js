// Files from the browser: the page as Python wrote it, and a picture of what is in sight.

function saveText(name, text) {
  saveUrl(name, URL.createObjectURL(new Blob([text], { type: "text/html" })));
}

function saveUrl(name, url) {
  const link = element("a");
  link.href = url;
  link.download = name;
  link.click();
  if (url.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// The styles of the widget, from wherever this page has them.
function ownStyles() {
  const rules = [];
  for (const sheet of document.styleSheets) {
    try {
      for (const rule of sheet.cssRules) if (rule.cssText.includes(".cdlm-x")) rules.push(rule.cssText);
    } catch {
      // a sheet of another origin is not ours
    }
  }
  return rules.join("\n");
}

// A copy that stands still: columns as they are scrolled, colours as they are now, no controls.
function standing(explorer) {
  const { root } = explorer;
  const copy = root.cloneNode(true);
  for (const node of copy.querySelectorAll(".cdlm-x-bar, .cdlm-x-tip")) node.remove();
  const colours = getComputedStyle(root);
  for (const name of ["--x-fg", "--x-ground", "--x-line", "--x-soft"]) {
    copy.style.setProperty(name, colours.getPropertyValue(name));
  }
  copy.style.background = "var(--x-ground)";
  copy.style.padding = "12px";
  copy.style.width = `${root.clientWidth}px`;
  const texts = root.querySelectorAll(".cdlm-x-text");
  copy.querySelectorAll(".cdlm-x-text").forEach((text, i) => {
    if (text.firstElementChild) text.firstElementChild.style.marginTop = `${-texts[i].scrollTop}px`;
    text.style.overflow = "hidden";
  });
  const rows = root.querySelectorAll(".cdlm-x-columns");
  copy.querySelectorAll(".cdlm-x-columns").forEach((row, i) => {
    row.style.overflow = "hidden";
    row.firstElementChild.style.marginLeft = `${-rows[i].scrollLeft}px`;
    const arcs = row.querySelector(".cdlm-x-arcs");
    if (arcs) arcs.style.left = `${-rows[i].scrollLeft}px`;
  });
  return copy;
}

async function savePicture(explorer) {
  const width = explorer.root.clientWidth + 24;
  const bar = explorer.bar.offsetHeight;
  const height = explorer.root.clientHeight - bar + 24;
  const style = element("style", "", ownStyles());
  const copy = standing(explorer);
  copy.prepend(style);
  copy.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
  const serialized = new XMLSerializer().serializeToString(copy);
  const markup = serialized.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd"); // XML has no others
  const svg =
    `<svg xmlns="${SVG}" width="${width}" height="${height}">` +
    `<foreignObject width="100%" height="100%">${markup}</foreignObject></svg>`;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = 2;
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [width * scale, height * scale];
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.drawImage(image, 0, 0);
  saveUrl("explorer.png", canvas.toDataURL("image/png"));
}
