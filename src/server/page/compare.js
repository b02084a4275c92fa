// One prompt, answered by two models side by side. Nothing of it is stored.
import { byId, make, say } from "./dom.js";
import { figureList } from "./figures.js";
import { MarkdownView } from "./markdown.js";
import { followLoading, modelName, modelNames } from "./models.js";
import { receive } from "./receive.js";
import { samplingParameters } from "./sampling.js";

const dialog = byId("compare-dialog");
const text = byId("compare-prompt");
const columns = [...document.querySelectorAll(".compare-column")].map((element) => ({
  element, select: element.querySelector("select"), answer: element.querySelector(".reply"),
  note: element.querySelector(".note"), figures: element.querySelector(".figures"),
}));
let asking = null; // AbortController

// What receive() writes an answer into.
class Answer {
  text = "";

  constructor(element) {
    this.view = new MarkdownView(element);
  }

  append(piece) {
    this.text += piece;
    this.frame ??= requestAnimationFrame(() => this.draw(false));
  }

  think() {} // reasoning is not compared

  draw(complete) {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.view.show(this.text, complete);
  }
}

async function fill({ select, answer, note, figures }, signal) {
  const model = select.value;
  const view = new Answer(answer);
  const loading = new AbortController();
  followLoading(model, loading.signal, (progress) => { if (!loading.signal.aborted) note.textContent = progress; });
  const system = byId("system").value.trim();
  const messages = [...(system ? [{ role: "system", content: system }] : []), { role: "user", content: text.value }];
  const body = { model, messages, ...samplingParameters(), stream: true, stream_options: { include_usage: true } };
  const { measured, error } = await receive(view, { path: "v1/chat/completions", body }, signal);
  loading.abort();
  view.draw(true);
  note.textContent = error ? error.message : "";
  figures.replaceChildren(...figureList(measured));
}

function showAsking(controller) {
  asking = controller;
  byId("compare-send").disabled = asking !== null;
  byId("compare-stop").disabled = asking === null;
}

async function compare() {
  if (asking || text.value.trim() === "") return;
  const controller = new AbortController();
  showAsking(controller);
  for (const { answer, note, figures } of columns) {
    answer.replaceChildren();
    figures.replaceChildren();
    note.textContent = "";
  }
  say("Answering");
  await Promise.all(columns.map((column) => fill(column, controller.signal)));
  showAsking(null);
  say("Both models have answered");
}

function open() {
  const names = modelNames();
  columns.forEach(({ select }, index) => {
    const kept = names.includes(select.value) ? select.value : null;
    select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    const other = names.find((name) => name !== modelName());
    select.value = kept ?? (index === 0 ? modelName() : other);
  });
  dialog.showModal();
  text.focus();
}

byId("compare-button").addEventListener("click", open);
byId("compare-form").addEventListener("submit", (event) => { event.preventDefault(); compare(); });
byId("compare-stop").addEventListener("click", () => asking?.abort());
byId("compare-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => asking?.abort());
