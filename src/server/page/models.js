// The models of the server: the chosen one's name, context length and default sampling values, and, if the server loads several by
// name, whether it is loaded.
import { listModels, request } from "./api.js";
import { byId, make } from "./dom.js";
import { showDefaults } from "./sampling.js";

const POLL_MS = 500;
const select = byId("model");
const loadButton = byId("load-model");
let models = []; // one per model, though a model may be served under several names

export const modelName = () => select.value;
// As the server reports it; a model that is not loaded has not been asked.
export const takesImages = () => find(select.value)?.architecture?.input_modalities?.includes("image") === true;
export const modelNames = () => models.map(({ id }) => id);

// "loaded", "loading", "unloaded" or "failed". A server of one model has no status: it is loaded.
const stateOf = ({ status } = {}) => (status?.failed ? "failed" : status?.value ?? "loaded");
const find = (name) => models.find(({ id }) => id === name);

function loadingText({ progress } = {}) {
  return progress ? `loading, ${Math.floor(progress.value * 100)} %` : "loading";
}

function factText(chosen) {
  const state = stateOf(chosen);
  if (state === "loading") return loadingText(chosen.status);
  if (state === "unloaded") return "not loaded: the first message loads it";
  if (state === "failed") return "could not be loaded";
  const length = chosen?.max_model_len;
  return length ? `${length.toLocaleString("en")} tokens` : "";
}

function showFacts() {
  const chosen = find(select.value);
  const state = stateOf(chosen);
  select.title = select.value;
  byId("model-length").textContent = factText(chosen);
  byId("model-length").title = state === "loaded" ? "Context length: prompt and answer together" : chosen.status.error ?? "";
  loadButton.hidden = !chosen?.status;
  loadButton.disabled = state === "loading";
  loadButton.textContent = state === "loaded" ? "Unload" : "Load";
  showDefaults(chosen?.default_sampling_params ?? {});
  byId("image-button").hidden = !takesImages();
}

function optionFor(model) {
  const state = stateOf(model);
  return make("option", { value: model.id }, state === "loaded" ? model.id : `${model.id} (${state === "unloaded" ? "not loaded" : state})`);
}

// Reads the list again and keeps the choice; at first, a loaded model is chosen.
async function refreshModels() {
  const listed = await listModels();
  // Names of the same files are one model; the first is the name in answers.
  models = listed.filter(({ root }, index) => !root || listed.findIndex((other) => other.root === root) === index);
  const chosen = find(select.value) ?? models.find((model) => stateOf(model) === "loaded") ?? models[0];
  select.replaceChildren(...models.map(optionFor));
  if (chosen) select.value = chosen.id;
  select.disabled = models.length < 2;
  byId("compare-button").hidden = models.length < 2;
  showFacts();
}

export async function loadModels() {
  try {
    await refreshModels();
  } catch (error) {
    select.replaceChildren(make("option", { value: "" }, "no model"));
    byId("model-length").textContent = error.message;
    throw error;
  }
}

const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

// While a model is being loaded, calls show(text) with the progress, and with "" at the end. Ends when signal is aborted.
export async function followLoading(name, signal, show) {
  if (!find(name)?.status) return;
  try {
    for (;;) {
      await pause(POLL_MS);
      if (signal.aborted) return;
      await refreshModels();
      const state = stateOf(find(name));
      if (state === "loaded" || state === "failed") return;
      show(`${name}: ${loadingText(find(name)?.status)}`);
    }
  } catch { // the request itself says what is wrong
  } finally {
    show("");
  }
}

async function loadOrUnload() {
  const name = select.value;
  const path = stateOf(find(name)) === "loaded" ? "models/unload" : "models/load";
  const headers = { "Content-Type": "application/json" };
  loadButton.disabled = true;
  const asked = new AbortController();
  const following = path === "models/load" ? followLoading(name, asked.signal, () => {}) : null;
  try {
    await request(path, { method: "POST", headers, body: JSON.stringify({ model: name }) });
    await following;
    await refreshModels();
  } catch (error) {
    asked.abort();
    await refreshModels().catch(() => {});
    byId("model-length").textContent = error.message;
  }
}

select.addEventListener("change", showFacts);
loadButton.addEventListener("click", loadOrUnload);
