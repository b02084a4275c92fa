// What the server is doing, from /metrics, once a second while the page is visible.
import { addressOf } from "./api.js";
import { byId, make } from "./dom.js";
import { authorization } from "./key.js";
import { parseMetrics, total } from "./metrics.js";

const SAMPLES = 60;
const POLL_MS = 1000;
const LONGEST_WAIT_MS = 30000;
// State of a page in /metrics: the word for it here.
const MEMORY = { referenced: "used", cached: "cached", free: "free" };
const STATES = Object.keys(MEMORY);
// Shown below the figures, and as tooltips on them.
const MEANINGS = {
  "Answering": "Requests that are being answered now",
  "Waiting": "Requests in the queue",
  "Tokens/s": "Tokens generated per second, for all requests together",
  "Reused": "Share of prompt tokens that were already in memory and were not computed again",
  "Memory for requests": "Used: by requests that are being answered. Cached: kept in case a prompt starts the same way, and given up "
    + "when memory is needed. Free: not in use.",
};
const SVG = "http://www.w3.org/2000/svg";

const whole = (value) => (value === null ? "–" : Math.round(value).toLocaleString("en"));
const percent = (value) => (value === null ? "–" : `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`);
const oneDecimal = (value) => (value === null ? "–" : value.toFixed(1));

function figure(name) {
  const value = make("dd", {}, "–");
  return { value, element: make("div", { title: MEANINGS[name] }, make("dt", {}, name), value) };
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

function bytes(count) {
  const unit = count >= 1e9 ? ["GB", 1e9] : ["MB", 1e6];
  return `${(count / unit[1]).toFixed(unit[0] === "GB" ? 1 : 0)} ${unit[0]}`;
}

function memoryBar() {
  const parts = STATES.map((state) => make("div", { className: state }));
  const sizes = STATES.map(() => make("span", {}, "–"));
  const bar = make("div", { className: "memory" }, ...parts);
  bar.setAttribute("aria-hidden", "true"); // the list below it says the same
  const legend = make("ul", { className: "legend" },
    ...STATES.map((state, index) => make("li", { className: state }, `${MEMORY[state]} `, sizes[index])));
  return {
    elements: [bar, legend],
    // values: pages per state. pageBytes: null if the server does not say.
    draw(values, pageBytes) {
      const sum = values.reduce((left, right) => left + (right ?? 0), 0);
      values.forEach((value, index) => {
        parts[index].style.flexGrow = value ?? 0;
        if (value === null || sum === 0) sizes[index].textContent = "–";
        else sizes[index].textContent = pageBytes ? bytes(value * pageBytes) : percent(value / sum);
      });
    },
  };
}

function meanings() {
  const rows = Object.entries(MEANINGS).map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  return make("details", { className: "meanings" }, make("summary", {}, "What these mean"), make("dl", {}, ...rows));
}

const running = figure("Answering");
const waiting = figure("Waiting");
const rate = figure("Tokens/s");
const hits = figure("Reused");
const used = figure("Memory for requests");
const spark = sparkline();
const memory = memoryBar();
byId("live").append(
  make("dl", { className: "row" }, running.element, waiting.element, rate.element, hits.element),
  spark.element,
  make("dl", { className: "line" }, used.element), ...memory.elements, meanings());

let pageBytes; // undefined: not yet read; null: unknown
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
  spark.draw(rates);
  const pages = STATES.map((state) => total(series, "octavo:pages", { state }));
  const sum = pages.includes(null) ? 0 : pages.reduce((left, right) => left + right);
  used.value.textContent = percent(sum > 0 ? pages[0] / sum : null);
  memory.draw(pages, pageBytes);
  byId("live-brief").textContent = `${whole(inFlight)} answering, ${oneDecimal(tokensPerSecond)} tok/s`;
}

let timer;
let wait = POLL_MS;

async function get(path) {
  const response = await fetch(addressOf(path), { headers: authorization(), signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw new Error(response.statusText);
  return response;
}

// A page's size does not change while the server runs.
async function readPageBytes() {
  try {
    const { plan_bytes: plan, pages } = await (await get("v1/octavo/memory")).json();
    pageBytes = plan.pages / pages.total || null;
  } catch {
    pageBytes = null; // shares are shown instead
  }
}

async function poll() {
  clearTimeout(timer);
  if (document.hidden) return;
  try {
    const series = parseMetrics(await (await get("metrics")).text());
    if (pageBytes === undefined && series.has("octavo:pages")) await readPageBytes();
    draw(series);
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
  pageBytes = undefined; // it may be another server by now
  wait = POLL_MS;
  poll();
}

export function watchServer() {
  document.addEventListener("visibilitychange", wake);
  document.addEventListener("keychange", wake);
  wake();
}
