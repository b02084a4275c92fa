// The list of stored conversations, and what can be done with each: open, rename, export, delete.
import { titleOf } from "./conversation.js";
import { byId, make, say } from "./dom.js";
import * as session from "./session.js";
import * as store from "./store.js";
import { conversationsIn, fileName, toJson, toMarkdown } from "./transfer.js";

const LARGEST_IMPORT = 20e6; // bytes
const sidebar = byId("sidebar");
const toggle = byId("sidebar-button");
const dialog = byId("conversation-dialog");
const nameField = byId("conversation-name");
const deleteButton = byId("delete-conversation");
let chosen = null; // the id that the dialog is about

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function dayOf(time) {
  const date = new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  return today ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

function itemFor(conversation, isCurrent) {
  const title = titleOf(conversation);
  const name = make("button", { type: "button", className: "open", title },
    make("span", {}, title), make("small", {}, dayOf(conversation.updated)));
  if (isCurrent) name.setAttribute("aria-current", "true");
  name.addEventListener("click", () => {
    session.open(conversation.id);
    close();
  });
  const more = make("button", { type: "button", className: "more quiet" }, "⋯");
  more.setAttribute("aria-label", `Rename, export or delete: ${title}`);
  more.addEventListener("click", () => manage(conversation));
  return make("li", {}, name, more);
}

export function drawList() {
  const all = store.loadAll();
  const { id } = session.current();
  byId("conversations").replaceChildren(...all.map((conversation) => itemFor(conversation, conversation.id === id)));
  byId("no-conversations").hidden = all.length > 0;
  byId("export-all").disabled = all.length === 0;
}

function manage(conversation) {
  chosen = conversation.id;
  nameField.value = titleOf(conversation);
  deleteButton.textContent = "Delete";
  dialog.showModal();
  nameField.select();
}

// Deleting takes two presses of the same button.
function deleteChosen() {
  if (deleteButton.textContent === "Delete") {
    deleteButton.textContent = "Delete for good";
    say("Press again to delete the conversation for good");
    return;
  }
  dialog.close();
  session.forget(chosen);
  say("Deleted");
}

function exportChosen(ending, type, write) {
  const conversation = store.load(chosen);
  if (conversation) download(fileName(titleOf(conversation), ending), type, write(conversation));
}

async function importFile(file) {
  const note = byId("import-note");
  try {
    if (file.size > LARGEST_IMPORT) throw new Error("the file is larger than 20 MB");
    const found = conversationsIn(await file.text());
    if (!found.every(store.save)) throw new Error("this browser has no space left");
    note.textContent = `Imported ${found.length === 1 ? "one conversation" : `${found.length} conversations`}.`;
    if (found.length > 0) session.open(found[0].id);
    drawList();
  } catch (error) {
    note.textContent = `Not imported: ${error.message}.`;
  }
}

// On a narrow screen the list covers the page, until something is chosen.
function open() {
  sidebar.classList.add("opened");
  toggle.setAttribute("aria-expanded", "true");
  byId("new").focus();
}

function close() {
  if (!sidebar.classList.contains("opened")) return;
  sidebar.classList.remove("opened");
  toggle.setAttribute("aria-expanded", "false");
  toggle.focus();
}

toggle.addEventListener("click", () => (sidebar.classList.contains("opened") ? close() : open()));
byId("shade").addEventListener("click", close);
sidebar.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
byId("conversation-form").addEventListener("submit", (event) => {
  event.preventDefault();
  session.rename(chosen, nameField.value);
  dialog.close();
});
byId("conversation-cancel").addEventListener("click", () => dialog.close());
byId("export-markdown").addEventListener("click", () => exportChosen("md", "text/markdown", toMarkdown));
byId("export-json").addEventListener("click", () => exportChosen("json", "application/json", (one) => toJson([one])));
byId("export-all").addEventListener("click", () => download("octavo-conversations.json", "application/json", toJson(store.loadAll())));
deleteButton.addEventListener("click", deleteChosen);
byId("import").addEventListener("click", () => byId("import-file").click());
byId("import-file").addEventListener("change", async ({ target }) => {
  if (target.files[0]) await importFile(target.files[0]);
  target.value = ""; // so that the same file can be chosen again
});
byId("new").addEventListener("click", () => {
  session.start();
  close();
  byId("prompt").focus();
});
store.watchStore(drawList);
