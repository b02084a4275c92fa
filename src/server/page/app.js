// The playground: connects the composer, the settings and the shown conversation.
import "./compare.js";
import { curlOf } from "./curl.js";
import { byId, copies } from "./dom.js";
import { watchServer } from "./live.js";
import { loadModels } from "./models.js";
import { invalidControl } from "./sampling.js";
import * as session from "./session.js";
import { drawList } from "./sidebar.js";

const WORDS = {
  chat: {
    label: "Message", lead: "Ask a question.",
    note: "Conversations stay in this browser. Messages go only to this server.",
  },
  complete: {
    label: "Text to continue", lead: "Start a text.",
    note: "The model continues the text as it stands, without a chat template.",
  },
};
const prompt = byId("prompt");

function refresh() {
  const { mode } = session.current();
  const { label, lead, note } = WORDS[mode];
  const answering = session.isAnswering();
  byId("empty").hidden = session.turnCount() > 0;
  byId("empty-lead").textContent = lead;
  byId("empty-note").textContent = note;
  byId("prompt-label").textContent = prompt.placeholder = label;
  byId("system-field").hidden = mode !== "chat";
  byId("editing").hidden = !session.isEditing();
  byId("stop").disabled = !answering;
  byId("send").disabled = answering;
  document.querySelector(`input[name=mode][value=${mode}]`).checked = true;
  document.body.classList.toggle("busy", answering);
  byId("composer").classList.toggle("plain-text", mode !== "chat");
  byId("curl").textContent = curlOf(session.currentRequest());
}

function send() {
  const invalid = invalidControl();
  if (!invalid) {
    session.send();
    return;
  }
  for (let box = invalid.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  invalid.reportValidity();
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
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  if (session.isAnswering()) session.stop();
  else if (session.isEditing()) session.cancelEdit();
});
byId("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
byId("settings").addEventListener("submit", (event) => event.preventDefault());
byId("settings").addEventListener("reset", () => setTimeout(() => { session.setSystem(""); refresh(); }));
byId("system").addEventListener("input", () => session.setSystem(byId("system").value));
byId("stop").addEventListener("click", session.stop);
byId("cancel-edit").addEventListener("click", session.cancelEdit);
for (const radio of document.querySelectorAll("input[name=mode]")) {
  radio.addEventListener("change", () => session.setMode(radio.value));
}
document.addEventListener("input", refresh);
document.addEventListener("keychange", refresh);
document.addEventListener("imagechange", refresh);
document.addEventListener("sessionchange", () => { refresh(); drawList(); });
copies(byId("copy-curl"), () => byId("curl").textContent);

const wideScreen = matchMedia("(min-width: 60rem)");
wideScreen.addEventListener("change", () => layOut(wideScreen.matches));
layOut(wideScreen.matches);
session.restore();
watchServer();
loadModels().then(refresh, () => {}); // the header says why
