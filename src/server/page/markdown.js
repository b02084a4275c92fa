// Shows Markdown. Elements are built from marked's tokens, never from HTML, so nothing a model writes is parsed as markup.
import { copies, make } from "./dom.js";
import { highlight } from "./highlight.js";
import { lexer } from "./vendor/marked/marked.esm.js";

const ENTITIES = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", deg: "°", times: "×", middot: "·",
  ndash: "–", mdash: "—", hellip: "…", larr: "←", rarr: "→", le: "≤", ge: "≥", ne: "≠",
};
const LAST_CODE_POINT = 0x10ffff;

function codePoint(number, otherwise) {
  return number > 0 && number <= LAST_CODE_POINT ? String.fromCodePoint(number) : otherwise;
}

// Entities of Markdown text: numbers and the common names. Others stay as written.
export function decodeEntities(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/gi, (all, decimal, hex, name) => {
    if (decimal) return codePoint(Number(decimal), all);
    if (hex) return codePoint(Number.parseInt(hex, 16), all);
    return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : all;
  });
}

// The address if a click on it can do no harm, otherwise null.
export function safeAddress(href) {
  try {
    const { protocol } = new URL(href); // relative addresses are refused: they would point into this server
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : null;
  } catch {
    return null;
  }
}

function link(href, children) {
  const address = safeAddress(href);
  if (address === null) return make("span", {}, ...children);
  return make("a", { href: address, title: address, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);
}

function inline(tokens = []) {
  return tokens.map((token) => {
    switch (token.type) {
      case "strong": return make("strong", {}, ...inline(token.tokens));
      case "em": return make("em", {}, ...inline(token.tokens));
      case "del": return make("del", {}, ...inline(token.tokens));
      case "codespan": return make("code", {}, token.text);
      case "br": return make("br");
      case "link": return link(token.href, inline(token.tokens));
      // An image is not loaded: its address could tell another server that it was shown.
      case "image": return link(token.href, [token.text || token.href]);
      case "text": return token.tokens ? make("span", {}, ...inline(token.tokens)) : decodeEntities(token.text);
      case "escape": return token.text;
      default: return token.raw; // HTML, among others
    }
  });
}

function cell(tag, { tokens, align }) {
  const element = make(tag, {}, ...inline(tokens));
  if (align) element.className = `to-${align}`;
  return element;
}

function table({ header, rows }) {
  const head = make("thead", {}, make("tr", {}, ...header.map((column) => cell("th", column))));
  for (const column of head.querySelectorAll("th")) column.scope = "col";
  const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((column) => cell("td", column)))));
  const frame = make("div", { className: "table", tabIndex: 0 }, make("table", {}, head, body));
  frame.setAttribute("role", "region"); // a wide one scrolls, by keyboard too
  frame.setAttribute("aria-label", "Table");
  return frame;
}

function listItem({ tokens, task, checked, loose }) {
  const content = tokens.flatMap((token) => {
    if (token.type === "checkbox") return [];
    return token.type === "text" && !loose ? inline([token]) : blocks([token]);
  });
  if (!task) return make("li", {}, ...content);
  const box = make("input", { type: "checkbox", checked, disabled: true });
  box.setAttribute("aria-label", checked ? "done" : "not done");
  return make("li", { className: "task" }, box, ...content);
}

function list({ ordered, start, items }) {
  const element = make(ordered ? "ol" : "ul", {}, ...items.map(listItem));
  if (ordered && start !== 1) element.start = start;
  return element;
}

// A heading of an answer is below the headings of the page.
const heading = ({ depth, tokens }) => make(`h${Math.min(6, depth + 2)}`, {}, ...inline(tokens));

function codeBlock({ text, lang }) {
  const language = (lang ?? "").trim().split(/\s/)[0];
  const code = make("code", {}, text);
  const pre = make("pre", { tabIndex: 0 }, code); // a wide one scrolls, by keyboard too
  pre.setAttribute("aria-label", language ? `Code, ${language}` : "Code");
  const button = make("button", { type: "button", className: "quiet" }, "Copy code");
  const element = make("figure", { className: "code" },
    make("figcaption", {}, make("span", {}, language), copies(button, () => code.textContent)), pre);
  element.dataset.language = language;
  return element;
}

function block(token) {
  switch (token.type) {
    case "space": case "def": return null;
    case "heading": return heading(token);
    case "paragraph": return make("p", {}, ...inline(token.tokens));
    case "text": return make("p", {}, ...(token.tokens ? inline(token.tokens) : [decodeEntities(token.text)]));
    case "code": return codeBlock(token);
    case "blockquote": return make("blockquote", {}, ...blocks(token.tokens));
    case "list": return list(token);
    case "table": return table(token);
    case "hr": return make("hr");
    default: return make("p", { className: "raw" }, token.raw);
  }
}

const blocks = (tokens) => tokens.map(block).filter((element) => element !== null);

const codeIn = (element) => (element.matches(".code") ? [element] : [...element.querySelectorAll(".code")]);

function tokensOf(text) {
  try {
    return lexer(text);
  } catch {
    return [{ type: "plain", raw: text }]; // nested too deeply, for example
  }
}

// Gives a paragraph the content of a newer one. The common case, more plain text at the end, keeps the text node.
function extend(paragraph, newer) {
  const [shown, wanted] = [paragraph.lastChild, newer.lastChild];
  const appends = paragraph.childNodes.length === 1 && newer.childNodes.length === 1
    && shown instanceof Text && wanted instanceof Text && wanted.data.startsWith(shown.data);
  if (appends) shown.appendData(wanted.data.slice(shown.length));
  else paragraph.replaceChildren(...newer.childNodes);
}

// One text that may grow. Blocks that did not change keep their elements, so that a selection survives streaming.
export class MarkdownView {
  shown = []; // of each block: {raw, type, element}

  constructor(element) {
    this.element = element;
  }

  // complete: no more text follows, so the last block is highlighted as well.
  show(text, complete) {
    const tokens = tokensOf(text).filter(({ type }) => type !== "space" && type !== "def");
    let same = 0;
    while (same < tokens.length && this.shown[same]?.raw === tokens[same].raw) same += 1;
    if (!this.grow(tokens, same)) {
      for (const { element } of this.shown.splice(same)) element.remove();
      for (const token of tokens.slice(same)) this.add(token);
    }
    const finished = complete ? this.shown : this.shown.slice(0, -1);
    for (const { element } of finished) codeIn(element).forEach(highlight);
  }

  // Extends a last paragraph or block of code in place: the latter keeps its button and scroll position. Returns whether it could.
  grow(tokens, same) {
    const [last, token] = [this.shown.at(-1), tokens.at(-1)];
    const only = same === tokens.length - 1 && same === this.shown.length - 1;
    if (!only || last.type !== token.type || last.lang !== token.lang) return false;
    if (token.type === "code") last.element.querySelector("code").textContent = token.text;
    else if (token.type === "paragraph") extend(last.element, block(token));
    else return false;
    last.raw = token.raw;
    return true;
  }

  add(token) {
    let element;
    try {
      element = block(token);
    } catch {
      element = make("p", { className: "raw" }, token.raw);
    }
    this.element.append(element);
    this.shown.push({ raw: token.raw, type: token.type, lang: token.lang, element });
  }
}
