// A request as a command line that a POSIX shell reads back unchanged.
import { addressOf } from "./api.js";
import { apiKey } from "./key.js";

// Inside single quotes a shell leaves everything alone but the single quote itself.
export function shellQuote(text) {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// An image would make the command megabytes long.
const shortened = (key, value) =>
  (typeof value === "string" && value.startsWith("data:image/") ? `${value.slice(0, value.indexOf(",") + 1)}...` : value);

export function curlOf({ path, body }) {
  const lines = [`curl -N ${shellQuote(addressOf(path))}`, "-H 'Content-Type: application/json'"];
  // Double quotes: the shell is to put the key in; the page never shows it.
  if (apiKey()) lines.push('-H "Authorization: Bearer $OCTAVO_API_KEY"');
  lines.push(`-d ${shellQuote(JSON.stringify(body, shortened, 2))}`);
  return lines.join(" \\\n  ");
}
