// One exchange: the prompt, the answer as it streams, and its figures.
import { copies, make } from "./dom.js";

const LABELS = { chat: ["You", "Answer"], complete: ["Prompt", "Completion"] };

// Cuts text at code fences: [{code: bool, language, text}]. A fence still open takes the rest.
export function segments(text) {
  const parts = [];
  let current = null;
  for (const line of text.split("\n")) {
    const fence = /^ {0,3}```+\s*([^`]*)$/.exec(line);
    if (fence && (!current?.code || fence[1] === "")) {
      current = current?.code ? null : { code: true, language: fence[1].trim(), lines: [] };
      if (current) parts.push(current);
      continue;
    }
    if (!current) parts.push((current = { code: false, language: "", lines: [] }));
    current.lines.push(line);
  }
  // Blank lines beside a code block would double its margin.
  return parts.map(({ lines, ...part }, index) => {
    const text = lines.join("\n");
    if (part.code) return { ...part, text };
    const from = index > 0 ? text.replace(/^\n+/, "") : text;
    return { ...part, text: index + 1 < parts.length ? from.replace(/\n+$/, "") : from };
  });
}

// Brings the children of element in line with text. Text nodes grow in place, so that a selection survives streaming.
function show(element, text) {
  const parts = segments(text);
  parts.forEach(({ code, language, text: wanted }, index) => {
    const tag = code ? "PRE" : "DIV";
    let child = element.children[index];
    if (child?.tagName !== tag) {
      const fresh = make(tag, {}, document.createTextNode(""));
      if (code) fresh.tabIndex = 0; // a wide one scrolls, by keyboard too
      if (child) child.replaceWith(fresh);
      else element.append(fresh);
      child = fresh;
    }
    if (code && language) child.dataset.language = language;
    const node = child.firstChild;
    if (wanted.startsWith(node.data)) node.appendData(wanted.slice(node.data.length));
    else node.data = wanted;
  });
  while (element.children.length > parts.length) element.lastChild.remove();
}

const milliseconds = (value) => (value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(2)} s`);

// Rate is over the tokens after the first, whose time is the prompt's.
function figures({ firstTokenMs, decodeMs, pieces, usage, finish }) {
  const out = usage?.completion_tokens ?? pieces;
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  const rate = out > 1 && decodeMs > 0 ? ((out - 1) * 1000) / decodeMs : null;
  return [
    ["first token", firstTokenMs === null ? "–" : milliseconds(firstTokenMs)],
    ["tokens/s", rate === null ? "–" : rate.toFixed(1)],
    ["in", usage?.prompt_tokens ?? "–"],
    ["cached", cached ?? "–"],
    ["out", usage ? out : `about ${out}`],
    ["finish", finish ?? "–"],
  ];
}

export class Turn {
  text = ""; // the answer so far

  // actions: {edit(turn), again(turn)}
  constructor(mode, prompt, actions) {
    this.prompt = prompt;
    const [asked, answered] = LABELS[mode];
    this.answer = make("div", { className: "text answer" });
    this.trouble = make("div");
    this.notes = make("dl", { className: "figures" });
    const question = make("div", { className: "text" }, make("div", {}, prompt));
    const button = (label, className, onclick) => make("button", { type: "button", className, onclick }, label);
    this.buttons = make("div", { className: "actions", hidden: true },
      copies(button("Copy", "quiet", null), () => this.text),
      button("Edit", "quiet last-only", () => actions.edit(this)),
      button("Regenerate", "quiet last-only", () => actions.again(this)));
    this.element = make("article", { className: "turn answering" },
      make("h2", {}, asked), question,
      make("h2", { className: "answerer" }, answered),
      make("div", {}, this.answer, this.trouble, make("div", { className: "foot" }, this.notes, this.buttons)));
  }

  append(text) {
    this.text += text;
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.following(() => show(this.answer, this.text));
  }

  // Does change, and stays at the end of the transcript if the reader was there.
  following(change) {
    const view = this.element.closest("#transcript");
    const atEnd = view && view.scrollHeight - view.scrollTop - view.clientHeight < 60;
    change();
    if (atEnd) view.scrollTop = view.scrollHeight;
  }

  // Ends the answer. error is {message, offer: {label, act} or null}, or null.
  end(measured, error) {
    this.draw();
    this.following(() => this.finish(measured, error));
  }

  finish(measured, error) {
    this.element.classList.remove("answering");
    this.element.classList.toggle("left-out", this.text === "");
    this.buttons.hidden = false;
    this.buttons.firstChild.hidden = this.text === "";
    if (this.text !== "" || !error) {
      this.notes.append(...figures(measured).map(([name, value]) =>
        make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
    }
    if (error) {
      const offer = error.offer && make("button", { type: "button", onclick: error.offer.act }, error.offer.label);
      this.trouble.append(make("div", { className: "error" }, make("p", {}, error.message), offer));
    }
  }
}
