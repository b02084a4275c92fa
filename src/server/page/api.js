// Requests to the server this page came from, and the events of a streamed answer.
import { apiKey, askForKey, authorization } from "./key.js";

export const addressOf = (path) => new URL(path, document.baseURI).href;

// An error response, with the server's message.
export class ApiError extends Error {
  constructor(message, { status = 0, param = null } = {}) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

async function refusal(response) {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text);
    if (error?.message) return new ApiError(error.message, { status: response.status, param: error.param });
  } catch { /* not JSON: shown as it is */ }
  const said = text.trim().slice(0, 300) || response.statusText;
  return new ApiError(`${response.status} ${said}`, { status: response.status });
}

// Asks for a key and tries again as long as the server answers 401 and the person has another one.
// startedAt is that of the last try, so a dialog does not count as the server's time.
export async function request(path, init = {}) {
  for (;;) {
    const startedAt = performance.now();
    const headers = { ...init.headers, ...authorization() };
    let response;
    try {
      response = await fetch(addressOf(path), { ...init, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("No answer from the server. Is it running?");
    }
    if (response.ok) return { response, startedAt };
    const refused = await refusal(response);
    if (response.status !== 401) throw refused;
    const reason = apiKey() ? "The server did not accept this key." : "The server requires an API key.";
    if (!(await askForKey(reason))) throw refused;
  }
}

export async function listModels() {
  const { response } = await request("v1/models");
  const { data } = await response.json();
  return data ?? [];
}

// The data of each server-sent event. Bytes may be split anywhere, even inside a character.
async function* eventData(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? `${decoder.decode()}\n\n` : decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop();
      for (const line of lines.map((text) => text.replace(/\r$/, ""))) {
        if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
        if (line === "" && data.length > 0) {
          yield data.join("\n");
          data = [];
        }
        // Anything else is a comment, or a field this page has no use for.
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// The chunks of one streamed answer, as parsed JSON. Throws ApiError when the server reports one on the way.
export async function* chunks(response) {
  for await (const data of eventData(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ApiError(chunk.error.message ?? "The server reported an error.");
    yield chunk;
  }
  throw new ApiError("The connection closed before the answer ended.");
}
