// The playground: two conversations (chat and complete), one composer, one answer at a time.
import { ApiError, chunks, listModels, request } from "./api.js";
import { curlOf } from "./curl.js";
import { byId, copies, make, say } from "./dom.js";
import { watchServer } from "./live.js";
import { invalidControl, samplingParameters } from "./sampling.js";
import { Turn } from "./turn.js";

const MODES = {
  chat: {
    list: byId("chat-turns"), turns: [], label: "Message", lead: "Ask a question.",
    note: "The conversation stays in this tab and is sent with each message.",
  },
  complete: {
    list: byId("complete-turns"), turns: [], label: "Text to continue", lead: "Start a text.",
    note: "The model continues the text as it stands, without a chat template.",
  },
};
const prompt = byId("prompt");
const model = byId("model");
let mode = "chat";
let editing = null;   // the turn that sending replaces
let answering = null; // {abort: AbortController}

// The request that asks text after the turns before it. A turn without an answer is left out: roles must alternate.
function requestFor(which, before, text) {
  const rest = { ...samplingParameters(), stream: true, stream_options: { include_usage: true } };
  if (which === "complete") return { path: "v1/completions", body: { model: model.value, prompt: text, ...rest } };
  const system = byId("system").value.trim();
  const messages = before.filter((turn) => turn.text !== "").flatMap((turn) => [
    { role: "user", content: turn.prompt }, { role: "assistant", content: turn.text }]);
  if (system) messages.unshift({ role: "system", content: system });
  messages.push({ role: "user", content: text });
  return { path: "v1/chat/completions", body: { model: model.value, messages, ...rest } };
}

// What Send would send; with nothing typed, what Regenerate would.
function currentRequest() {
  const { turns } = MODES[mode];
  const replaced = editing ?? (prompt.value.trim() === "" ? turns.at(-1) : null);
  const before = replaced ? turns.slice(0, -1) : turns;
  return requestFor(mode, before, prompt.value.trim() === "" ? replaced?.prompt ?? "" : prompt.value);
}

function refresh() {
  const { turns, list, label, lead, note } = MODES[mode];
  for (const { list: other } of Object.values(MODES)) other.hidden = other !== list;
  byId("empty").hidden = turns.length > 0;
  byId("empty-lead").textContent = lead;
  byId("empty-note").textContent = note;
  byId("prompt-label").textContent = prompt.placeholder = label;
  byId("system-field").hidden = mode !== "chat";
  byId("editing").hidden = !editing;
  byId("stop").disabled = !answering;
  byId("send").disabled = Boolean(answering);
  document.body.classList.toggle("busy", Boolean(answering));
  byId("curl").textContent = curlOf(currentRequest());
}

function showModelLength() {
  const length = Number(model.selectedOptions[0]?.dataset.length);
  byId("model-length").textContent = length ? `${length.toLocaleString("en")} tokens` : "";
}

async function loadModels() {
  const models = await listModels();
  model.replaceChildren(...models.map(({ id, max_model_len: length }) => {
    const option = make("option", { value: id }, id);
    option.dataset.length = length ?? "";
    return option;
  }));
  model.disabled = models.length < 2;
  model.title = model.value;
  showModelLength();
  refresh();
}

// Reads one answer into turn and returns what was measured; an error on the way comes back with it.
async function receive(turn, { path, body }, signal) {
  const measured = { firstTokenMs: null, decodeMs: 0, pieces: 0, usage: null, finish: null };
  try {
    const { response, startedAt } = await request(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
    let firstAt = null;
    for await (const chunk of chunks(response)) {
      const choice = chunk.choices?.[0];
      const piece = choice?.delta?.content ?? choice?.text ?? "";
      if (piece !== "") {
        const now = performance.now();
        firstAt ??= now;
        measured.firstTokenMs = firstAt - startedAt;
        measured.decodeMs = now - firstAt;
        measured.pieces += 1;
        turn.append(piece);
      }
      measured.finish = choice?.finish_reason ?? measured.finish;
      measured.usage = chunk.usage ?? measured.usage;
    }
    return { measured, error: null };
  } catch (error) {
    measured.finish = signal.aborted ? "stopped" : "error";
    if (signal.aborted) return { measured, error: null };
    const known = error instanceof ApiError;
    return { measured, error: known ? error : new ApiError(`The response was interrupted: ${error.message}`) };
  }
}

// A model without a chat template refuses messages, and can still continue text.
function offerFor(which, text, error) {
  const noTemplate = error.status === 400 && (error.param === "messages" || /template/i.test(error.message));
  if (which !== "chat" || !noTemplate) return null;
  return { label: "Complete this text instead", act: () => { setMode("complete"); compose(text); } };
}

async function ask(text) {
  const which = mode;
  const { turns, list } = MODES[which];
  const abort = new AbortController();
  answering = { abort };
  const before = [...turns];
  const turn = new Turn(which, text, { edit, again });
  turns.push(turn);
  list.append(turn.element);
  refresh();
  byId("transcript").scrollTop = byId("transcript").scrollHeight;
  say("Answering");

  if (!model.value) await loadModels().catch(() => {}); // if it fails again, so will the request, and say why
  const { measured, error } = await receive(turn, requestFor(which, before, text), abort.signal);
  answering = null;
  turn.end(measured, error && { message: error.message, offer: offerFor(which, text, error) });
  if (turns.includes(turn)) say(error ? `Error: ${error.message}` : turn.text || "No answer");
  refresh();
}

function drop(turn) {
  const { turns } = MODES[mode];
  turns.splice(turns.indexOf(turn), 1);
  turn.element.remove();
}

function send() {
  const text = prompt.value;
  if (answering || text.trim() === "") return;
  const invalid = invalidControl();
  if (invalid) {
    for (let box = invalid.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    invalid.reportValidity();
    return;
  }
  if (editing) drop(editing);
  editing = null;
  prompt.value = "";
  prompt.focus();
  ask(text);
}

function again(turn) {
  if (answering) return;
  drop(turn);
  prompt.focus();
  ask(turn.prompt);
}

function compose(text) {
  prompt.value = text;
  prompt.focus();
  refresh();
}

function edit(turn) {
  if (answering) return;
  editing = turn;
  compose(turn.prompt);
}

function cancelEdit() {
  editing = null;
  compose("");
}

function setMode(next) {
  mode = next;
  editing = null;
  document.querySelector(`input[name=mode][value=${next}]`).checked = true;
  refresh();
}

function clear() {
  answering?.abort.abort();
  const { turns, list } = MODES[mode];
  turns.length = 0;
  list.replaceChildren();
  editing = null;
  say("Cleared");
  compose("");
}

function layOut(wide) {
  byId("panels").open = wide;
  for (const panel of document.querySelectorAll(".wide-open")) panel.open = wide;
}

prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || byId("key-dialog").open) return;
  if (answering) answering.abort.abort();
  else if (editing) cancelEdit();
});
byId("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
byId("settings").addEventListener("submit", (event) => event.preventDefault());
byId("settings").addEventListener("reset", () => setTimeout(refresh));
byId("stop").addEventListener("click", () => answering?.abort.abort());
byId("clear").addEventListener("click", clear);
byId("cancel-edit").addEventListener("click", cancelEdit);
for (const radio of document.querySelectorAll("input[name=mode]")) {
  radio.addEventListener("change", () => setMode(radio.value));
}
model.addEventListener("change", showModelLength);
document.addEventListener("input", refresh);
document.addEventListener("keychange", refresh);
copies(byId("copy-curl"), () => byId("curl").textContent);

const wideScreen = matchMedia("(min-width: 60rem)");
wideScreen.addEventListener("change", () => layOut(wideScreen.matches));
layOut(wideScreen.matches);
refresh();
watchServer();
loadModels().catch((error) => {
  model.replaceChildren(make("option", { value: "" }, "no model"));
  byId("model-length").textContent = error.message;
});
