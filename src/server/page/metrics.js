// Reads the Prometheus text of /metrics.

// {name: [{labels: {key: value}, value}]}. Lines it cannot read are left out.
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
export function total(series, name, wanted = {}) {
  const found = (series.get(name) ?? []).filter(({ labels }) =>
    Object.entries(wanted).every(([key, value]) => labels[key] === value));
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
}
