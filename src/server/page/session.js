// The conversations that are open, the one that is shown, and the answer that is being received: one at a time.
import { newConversation } from "./conversation.js";
import { byId, make, say } from "./dom.js";
import { attach, attached } from "./images.js";
import { followLoading, loadModels, modelName, modelNames } from "./models.js";
import { receive } from "./receive.js";
import { samplingParameters } from "./sampling.js";
import * as store from "./store.js";
import { Turn } from "./turn.js";

const prompt = byId("prompt");
const opened = new Map(); // by id: {conversation, turns: [Turn], element}, so that an answer goes on when another one is shown
let shown = null; // an entry of opened
let editing = null; // the turn that sending replaces, with those after it
let answering = null; // {abort: AbortController}

const changed = () => document.dispatchEvent(new Event("sessionchange"));

export const current = () => shown.conversation;
export const turnCount = () => shown.turns.length;
export const isAnswering = () => answering !== null;
export const isEditing = () => editing !== null;
export const stop = () => answering?.abort.abort();

// What is stored of a conversation whose images do not fit into the browser's storage.
function withoutImages(conversation) {
  const turns = conversation.turns.map((turn) => ({ ...turn, images: [], lostImages: turn.images.length || turn.lostImages }));
  return { ...conversation, turns };
}

// A conversation without turns is not stored. Answers that are still coming are stored as far as they are.
function keep(entry) {
  const { conversation, turns } = entry;
  if (turns.length === 0 || !opened.has(conversation.id)) return;
  conversation.turns = turns.map((turn) => turn.record());
  const stored = store.save(conversation) || store.save(withoutImages(conversation));
  byId("notice").hidden = stored;
  if (stored) return;
  byId("notice").textContent = "This browser could not store the conversation. Delete old ones to make space.";
  say(byId("notice").textContent);
}

function show(entry) {
  shown = entry;
  editing = null;
  byId("turns").replaceChildren(entry.element);
  byId("system").value = entry.conversation.system;
  byId("transcript").scrollTop = byId("transcript").scrollHeight;
  history.replaceState(null, "", entry.turns.length > 0 ? `#${entry.conversation.id}` : location.pathname + location.search);
  changed();
}

function enter(conversation) {
  const entry = { conversation, turns: [], element: make("div") };
  entry.turns = conversation.turns.map((record) => Turn.from(conversation.mode, record, { edit, again }));
  entry.element.append(...entry.turns.map(({ element }) => element));
  opened.set(conversation.id, entry);
  return entry;
}

export function start(mode = shown?.conversation.mode ?? "chat") {
  const system = byId("system").value;
  if (shown?.turns.length === 0) opened.delete(shown.conversation.id);
  show(enter(newConversation(mode, system)));
}

// Shows a stored conversation. Returns false if there is none with this id.
export function open(id) {
  const conversation = opened.get(id)?.conversation ?? store.load(id);
  if (!conversation) return false;
  show(opened.get(id) ?? enter(conversation));
  return true;
}

// A conversation has one mode: with turns in it, another mode starts another conversation.
export function setMode(mode) {
  if (mode !== shown.conversation.mode) start(mode);
}

export function setSystem(text) {
  shown.conversation.system = text;
  keep(shown);
}

export function rename(id, title) {
  const conversation = opened.get(id)?.conversation ?? store.load(id);
  if (!conversation) return;
  Object.assign(conversation, { title: title.trim(), named: title.trim() !== "" });
  if (store.save(conversation)) changed();
}

export function forget(id) {
  const entry = opened.get(id);
  if (entry && answering?.entry === entry) stop();
  opened.delete(id);
  store.remove(id);
  if (entry && entry === shown) start();
  else changed();
}

// Images come first, as the models' own examples have it.
function contentOf({ prompt: text, images }) {
  if (images.length === 0) return text;
  const parts = images.map((url) => ({ type: "image_url", image_url: { url } }));
  return text.trim() === "" ? parts : [...parts, { type: "text", text }];
}

// The request that sends a message after the turns before it. A turn without an answer is left out: roles must alternate.
function requestFor({ mode, system }, before, message) {
  const rest = { ...samplingParameters(), stream: true, stream_options: { include_usage: true } };
  if (mode === "complete") return { path: "v1/completions", body: { model: modelName(), prompt: message.prompt, ...rest } };
  const messages = before.filter((turn) => turn.text !== "").flatMap((turn) => [
    { role: "user", content: contentOf(turn) }, { role: "assistant", content: turn.text }]);
  if (system.trim()) messages.unshift({ role: "system", content: system.trim() });
  messages.push({ role: "user", content: contentOf(message) });
  return { path: "v1/chat/completions", body: { model: modelName(), messages, ...rest } };
}

// What is written in the composer. Only chat messages have images.
const composed = () => ({ prompt: prompt.value, images: shown.conversation.mode === "chat" ? attached() : [] });
const isSomething = (message) => message.prompt.trim() !== "" || message.images.length > 0;

// What Send would send; with nothing typed, what Regenerate would.
export function currentRequest() {
  const { conversation, turns } = shown;
  const message = composed();
  const typed = isSomething(message);
  const replaced = editing ?? (typed ? null : turns.at(-1));
  const before = replaced ? turns.slice(0, turns.indexOf(replaced)) : turns;
  return requestFor(conversation, before, typed ? message : replaced ?? message);
}

// A model without a chat template refuses messages, and can still continue text.
function offerFor({ mode }, message, error) {
  const noTemplate = error.status === 400 && (error.param === "messages" || /template/i.test(error.message));
  if (mode !== "chat" || !noTemplate) return null;
  return { label: "Complete this text instead", act: () => { setMode("complete"); compose(message.prompt); } };
}

async function ask(message) {
  const entry = shown;
  const { conversation, turns } = entry;
  const abort = new AbortController();
  answering = { abort, entry };
  const before = [...turns];
  const turn = new Turn(conversation.mode, message, { edit, again });
  turns.push(turn);
  entry.element.append(turn.element);
  conversation.updated = Date.now();
  keep(entry);
  show(entry);
  say("Answering");

  if (!modelName()) await loadModels().catch(() => {}); // if it fails again, so will the request, and say why
  const sent = requestFor(conversation, before, message);
  const loading = new AbortController();
  followLoading(sent.body.model, loading.signal, (progress) => turn.wait(progress));
  const { measured, error } = await receive(turn, sent, abort.signal);
  loading.abort();
  answering = null;
  if (modelNames().length > 1) measured.model = sent.body.model;
  turn.end(measured, error && { message: error.message, offer: offerFor(conversation, message, error) });
  say(error ? `Error: ${error.message}` : turn.text || "No answer");
  conversation.updated = Date.now();
  keep(entry);
  changed();
}

function dropFrom(turn) {
  for (const { element } of shown.turns.splice(shown.turns.indexOf(turn))) element.remove();
}

export function send() {
  const message = composed();
  if (answering || !isSomething(message)) return;
  if (editing) dropFrom(editing);
  prompt.value = "";
  attach([]);
  prompt.focus();
  ask(message);
}

function again(turn) {
  if (answering) return;
  dropFrom(turn);
  prompt.focus();
  ask({ prompt: turn.prompt, images: turn.images });
}

function compose(text, images = []) {
  prompt.value = text;
  attach(images);
  prompt.focus();
  changed();
}

function edit(turn) {
  if (answering) return;
  editing = turn;
  compose(turn.prompt, turn.images);
}

export function cancelEdit() {
  editing = null;
  compose("");
}

// The address names the conversation, so that a reload shows it again.
export function restore() {
  if (!open(location.hash.slice(1))) start();
  window.addEventListener("hashchange", () => open(location.hash.slice(1)));
  window.addEventListener("pagehide", () => { if (answering) keep(answering.entry); });
}
