// The sampling controls. An empty one is not sent: the server's own default holds.
import { byId, make } from "./dom.js";

// otherwise: the default of a server that reports none.
const FIELDS = [
  { name: "temperature", label: "Temperature", help: "Higher is more varied; 0 is always the same", otherwise: 1,
    min: 0, max: 2, step: 0.1 },
  { name: "top_p", label: "Top p", help: "Keeps the likeliest tokens up to this probability; 1 keeps all", otherwise: 1,
    min: 0, max: 1, step: 0.05 },
  { name: "top_k", label: "Top k", help: "Keeps this many of the likeliest tokens; 0 keeps all", otherwise: 0, min: -1, step: 1 },
  { name: "min_p", label: "Min p", help: "Drops tokens below this share of the likeliest one", otherwise: 0, min: 0, max: 1, step: 0.05 },
  { name: "max_tokens", label: "Max tokens", help: "Longest answer, in tokens", min: 1, step: 1, initial: 1024, placeholder: "no limit" },
  { name: "seed", label: "Seed", help: "Same seed, same answer", step: 1, placeholder: "random" },
  { name: "repetition_penalty", label: "Repetition", help: "Above 1 discourages repetition", otherwise: 1, min: 0, max: 2, step: 0.05 },
  { name: "presence_penalty", label: "Presence", help: "Penalty for tokens already used", otherwise: 0, min: -2, max: 2, step: 0.1 },
  { name: "frequency_penalty", label: "Frequency", help: "Penalty per use of a token", otherwise: 0, min: -2, max: 2, step: 0.1 },
];
const WHOLE_LIMIT = Number.MAX_SAFE_INTEGER;

function control({ name, label, help, initial = "", placeholder = "default", otherwise, ...limits }) {
  const input = make("input", { id: name, type: "number", placeholder });
  Object.assign(input, { min: -WHOLE_LIMIT, max: WHOLE_LIMIT, ...limits });
  input.defaultValue = initial;
  input.setAttribute("aria-describedby", `${name}-help`);
  return make("div", { className: "field" },
    make("label", { htmlFor: name }, label), input, make("small", { id: `${name}-help` }, help));
}

function stopControl() {
  const area = make("textarea", { id: "stop-strings", rows: 2, placeholder: "none", spellcheck: false });
  area.setAttribute("aria-describedby", "stop-help");
  return make("div", {}, make("label", { htmlFor: "stop-strings" }, "Stop strings"), area,
    make("small", { id: "stop-help" }, "One per line; \\n stands for a new line"));
}

const usual = FIELDS.findIndex(({ name }) => name === "repetition_penalty");
byId("sampling").append(...FIELDS.slice(0, usual).map(control));
byId("more-sampling").append(...FIELDS.slice(usual).map(control), stopControl());

// An empty control shows the value that holds.
export function showDefaults(defaults) {
  for (const { name, otherwise } of FIELDS) {
    if (otherwise === undefined) continue;
    const value = Number(defaults[name] ?? otherwise);
    byId(name).placeholder = `default ${Number(value.toFixed(3))}`; // the server's floats have more digits than they mean
  }
}

const ESCAPES = { n: "\n", t: "\t", "\\": "\\" };

export function stopStrings(text) {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => line.replace(/\\([nt\\])/g, (_, letter) => ESCAPES[letter]));
}

// The first control with a value that cannot be sent, or null. A fraction's step is for the arrow keys only.
export function invalidControl() {
  return FIELDS.map(({ name }) => byId(name)).find(({ validity: is, step }) =>
    is.badInput || is.rangeUnderflow || is.rangeOverflow || (step === "1" && is.stepMismatch)) ?? null;
}

export function samplingParameters() {
  const parameters = {};
  for (const { name } of FIELDS) {
    const { value } = byId(name);
    if (value !== "") parameters[name] = Number(value);
  }
  const stop = stopStrings(byId("stop-strings").value);
  if (stop.length > 0) parameters.stop = stop;
  return parameters;
}
