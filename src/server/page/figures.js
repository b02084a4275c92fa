// The measured figures of one answer, in words.
import { make } from "./dom.js";

// A model that ended its answer by itself ("stop") needs no mention.
const ENDINGS = {
  length: ["reached Max tokens", "The answer was cut at the limit: raise Max tokens in the settings"],
  stopped: ["stopped", "You stopped the answer"],
  error: ["error", "The answer ended with an error"],
};

const duration = (milliseconds) =>
  (milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(2)} s`);
const tokens = (count) => `${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}`;

// Rows of [name, value, explanation]. The rate is over the tokens after the first, whose time is the prompt's.
export function figureRows({ firstTokenMs, decodeMs, pieces, usage, finish, model }) {
  const out = usage?.completion_tokens ?? pieces;
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  const rate = out > 1 && decodeMs > 0 ? ((out - 1) * 1000) / decodeMs : null;
  const read = usage ? tokens(usage.prompt_tokens) + (cached > 0 ? `, ${cached.toLocaleString("en")} cached` : "") : "–";
  const [ending, why] = ENDINGS[finish] ?? [finish ?? "–", "Why the answer ended"];
  const rows = [
    ...(model ? [["model", model, "The model that answered"]] : []),
    ["speed", rate === null ? "–" : `${rate.toFixed(1)} tokens/s`, "Tokens generated per second, after the first"],
    ["first token", firstTokenMs === null ? "–" : duration(firstTokenMs), "Time from sending to the first token"],
    ["prompt", read, "Tokens read; cached ones were computed for an earlier request and not again"],
    ["answer", usage ? tokens(out) : `about ${tokens(out)}`, "Tokens generated"],
  ];
  return finish === "stop" ? rows : [...rows, ["ended", ending, why]];
}

export function figureList(measured) {
  return figureRows(measured).map(([name, value, title]) =>
    make("div", { title }, make("dt", {}, name), make("dd", {}, value)));
}
