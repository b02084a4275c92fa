// The sampling controls. An empty one is not sent: the server's own default holds.
import { byId, make } from "./dom.js";

const FIELDS = [
  { name: "temperature", label: "Temperature", help: "0 is greedy", min: 0, max: 2, step: 0.1 },
  { name: "top_p", label: "Top p", help: "Probability mass kept", min: 0, max: 1, step: 0.05 },
  { name: "top_k", label: "Top k", help: "Most likely tokens kept; 0 for all", min: -1, step: 1 },
  { name: "min_p", label: "Min p", help: "Minimum, relative to the top token", min: 0, max: 1, step: 0.05 },
  { name: "max_tokens", label: "Max tokens", help: "Maximum output length", min: 1, step: 1, initial: 512 },
  { name: "seed", label: "Seed", help: "Same seed, same output", step: 1, placeholder: "none" },
  { name: "repetition_penalty", label: "Repetition", help: "Above 1 discourages repetition", min: 0, max: 2, step: 0.05 },
  { name: "presence_penalty", label: "Presence", help: "Penalty for tokens already used", min: -2, max: 2, step: 0.1 },
  { name: "frequency_penalty", label: "Frequency", help: "Penalty per use of a token", min: -2, max: 2, step: 0.1 },
];
const WHOLE_LIMIT = Number.MAX_SAFE_INTEGER;

function control({ name, label, help, initial = "", placeholder = "default", ...limits }) {
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
