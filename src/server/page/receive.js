// Sends one request and reads the streamed answer.
import { ApiError, chunks, request } from "./api.js";

// Reads one answer into turn and returns what was measured; an error on the way comes back with it.
export async function receive(turn, { path, body }, signal) {
  const measured = { firstTokenMs: null, decodeMs: 0, pieces: 0, usage: null, finish: null };
  try {
    const { response, startedAt } = await request(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
    let firstAt = null;
    for await (const chunk of chunks(response)) {
      const choice = chunk.choices?.[0];
      const thought = choice?.delta?.reasoning ?? "";
      const piece = choice?.delta?.content ?? choice?.text ?? "";
      if (piece !== "" || thought !== "") {
        const now = performance.now();
        firstAt ??= now;
        measured.firstTokenMs = firstAt - startedAt;
        measured.decodeMs = now - firstAt;
        measured.pieces += 1;
        if (thought !== "") turn.think(thought);
        if (piece !== "") turn.append(piece);
      }
      measured.finish = choice?.finish_reason ?? measured.finish;
      measured.usage = chunk.usage ?? measured.usage;
    }
    return { measured, error: null };
  } catch (error) {
    measured.finish = signal.aborted ? "stopped" : "error";
    if (signal.aborted) return { measured, error: null };
    const known = error instanceof ApiError;
    return { measured, error: known ? error : new ApiError(`The response was interrupted: ${error.message}`) };
  }
}
