// The model of the server: its name, context length and default sampling values.
import { listModels } from "./api.js";
import { byId, make } from "./dom.js";
import { showDefaults } from "./sampling.js";

const select = byId("model");
let models = []; // one per model, though a model may be served under several names

export const modelName = () => select.value;

function showFacts() {
  const chosen = models.find(({ id }) => id === select.value);
  const length = chosen?.max_model_len;
  select.title = select.value;
  byId("model-length").textContent = length ? `${length.toLocaleString("en")} tokens` : "";
  byId("model-length").title = "Context length: prompt and answer together";
  showDefaults(chosen?.default_sampling_params ?? {});
}

export async function loadModels() {
  try {
    const listed = await listModels();
    // Names of the same files are one model; the first is the name in answers.
    models = listed.filter(({ root }, index) => !root || listed.findIndex((other) => other.root === root) === index);
    select.replaceChildren(...models.map(({ id }) => make("option", { value: id }, id)));
    select.disabled = models.length < 2;
    showFacts();
  } catch (error) {
    select.replaceChildren(make("option", { value: "" }, "no model"));
    byId("model-length").textContent = error.message;
    throw error;
  }
}

select.addEventListener("change", showFacts);
