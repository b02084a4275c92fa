// What the server is doing, from /metrics, once a second while someone looks.
import { addressOf } from "./api.js";
import { byId, make } from "./dom.js";
import { authorization } from "./key.js";

const SAMPLES = 60;
const POLL_MS = 1000;
const LONGEST_WAIT_MS = 30000;
const PAGE_STATES = ["referenced", "cached", "free"];
const SVG = "http://www.w3.org/2000/svg";

// Prometheus text: {name: [{labels: {key: value}, value}]}. Lines it cannot read are left out.
export function parseMetrics(text) {
  const series = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)\s*(?:\{(.*)\})?\s+([^\s}]+)(?:\s+-?\d+)?\s*$/.exec(line);
    const value = Number(match?.[3]);
    if (!match || !Number.isFinite(value)) continue;
    const pairs = [...(match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    const labels = Object.fromEntries(pairs.map(([, key, content]) => [key, content]));
    if (!series.has(match[1])) series.set(match[1], []);
    series.get(match[1]).push({ labels, value });
  }
  return series;
}

// The sum over engines, or null when there is nothing to add.
function total(series, name, wanted = {}) {
  const found = (series.get(name) ?? []).filter(({ labels }) =>
    Object.entries(wanted).every(([key, value]) => labels[key] === value));
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
}

function average(series, name) {
  const sum = total(series, name);
  return sum === null ? null : sum / series.get(name).length;
}

const whole = (value) => (value === null ? "–" : Math.round(value).toLocaleString("en"));
const percent = (value) => (value === null ? "–" : `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`);
const oneDecimal = (value) => (value === null ? "–" : value.toFixed(1));

function figure(name) {
  const value = make("dd", {}, "–");
  return { value, element: make("div", {}, make("dt", {}, name), value) };
}

function sparkline() {
  const svg = document.createElementNS(SVG, "svg");
  const area = svg.appendChild(document.createElementNS(SVG, "polygon"));
  const line = svg.appendChild(document.createElementNS(SVG, "polyline"));
  svg.setAttribute("viewBox", `0 0 ${SAMPLES - 1} 24`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true"); // the figure beside it says the same
  return {
    element: svg,
    draw(rates) {
      const top = Math.max(1, ...rates);
      const first = SAMPLES - rates.length;
      const points = rates.map((rate, index) => `${first + index},${(23 - (rate / top) * 21).toFixed(2)}`);
      line.setAttribute("points", points.join(" "));
      area.setAttribute("points", [`${first},24`, ...points, `${SAMPLES - 1},24`].join(" "));
    },
  };
}

function pageBar() {
  const parts = PAGE_STATES.map((state) => make("div", { className: state }));
  const counts = PAGE_STATES.map(() => make("span", {}, "–"));
  const bar = make("div", { className: "pages" }, ...parts);
  bar.setAttribute("aria-hidden", "true");
  const legend = make("ul", { className: "legend" },
    ...PAGE_STATES.map((state, index) => make("li", { className: state }, `${state} `, counts[index])));
  return {
    elements: [bar, legend],
    draw(values) {
      values.forEach((value, index) => {
        parts[index].style.flexGrow = value ?? 0;
        counts[index].textContent = whole(value);
      });
    },
  };
}

const running = figure("Running");
const waiting = figure("Waiting");
const rate = figure("Tokens/s");
const hits = figure("Prefix hits");
const used = figure("KV cache in use");
const spark = sparkline();
const pages = pageBar();
byId("live").append(
  make("dl", { className: "row" }, running.element, waiting.element, rate.element, hits.element),
  spark.element,
  make("dl", { className: "line" }, used.element), ...pages.elements);

let previous = null; // {tokens, at}
let rates = [];

// Tokens per second since the last reading. A counter that went back means a new server.
function generationRate(tokens, at) {
  const before = previous;
  previous = tokens === null ? null : { tokens, at };
  if (tokens === null || before === null) return null;
  return Math.max(0, ((tokens - before.tokens) * 1000) / (at - before.at));
}

function draw(series) {
  const tokensPerSecond = generationRate(total(series, "vllm:generation_tokens_total"), performance.now());
  if (tokensPerSecond !== null) rates = [...rates, tokensPerSecond].slice(-SAMPLES);
  const queries = total(series, "vllm:prefix_cache_queries_total");
  const hit = total(series, "vllm:prefix_cache_hits_total");
  const inFlight = total(series, "vllm:num_requests_running");

  running.value.textContent = whole(inFlight);
  waiting.value.textContent = whole(total(series, "vllm:num_requests_waiting"));
  rate.value.textContent = oneDecimal(tokensPerSecond);
  hits.value.textContent = percent(hit === null || !queries ? null : hit / queries);
  used.value.textContent = percent(average(series, "vllm:kv_cache_usage_perc"));
  spark.draw(rates);
  pages.draw(PAGE_STATES.map((state) => total(series, "octavo:pages", { state })));
  byId("live-brief").textContent = `${whole(inFlight)} running, ${oneDecimal(tokensPerSecond)} tok/s`;
}

let timer;
let wait = POLL_MS;

async function poll() {
  clearTimeout(timer);
  if (document.hidden) return;
  try {
    const response = await fetch(addressOf("metrics"), { headers: authorization(), signal: AbortSignal.timeout(5000) });
    if (!response.ok) throw new Error(response.statusText);
    draw(parseMetrics(await response.text()));
    wait = POLL_MS;
  } catch {
    previous = null;
    draw(new Map());
    wait = Math.min(wait * 2, LONGEST_WAIT_MS); // a server without metrics is not asked every second
  }
  clearTimeout(timer);
  timer = setTimeout(poll, wait);
}

function wake() {
  previous = null; // the time between was not watched
  wait = POLL_MS;
  poll();
}

export function watchServer() {
  document.addEventListener("visibilitychange", wake);
  document.addEventListener("keychange", wake);
  wake();
}
