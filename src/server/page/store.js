// Conversations, kept in this browser's localStorage: one entry each. Nothing is sent anywhere.
import { conversationOf } from "./conversation.js";

const PREFIX = "octavo-conversation:";

// A page opened from a sandboxed frame, or with storage turned off, has none: then nothing is kept.
function storage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

export function load(id) {
  try {
    const text = storage()?.getItem(PREFIX + id);
    return text ? conversationOf(JSON.parse(text)) : null;
  } catch {
    return null; // an entry that is not ours, or damaged
  }
}

// All of them, the most recently changed first.
export function loadAll() {
  const ids = Object.keys(storage() ?? {}).filter((key) => key.startsWith(PREFIX)).map((key) => key.slice(PREFIX.length));
  return ids.map(load).filter((found) => found !== null).sort((a, b) => b.updated - a.updated);
}

// Returns false if the browser has no space left or keeps nothing.
export function save(conversation) {
  try {
    storage().setItem(PREFIX + conversation.id, JSON.stringify(conversation));
    return true;
  } catch {
    return false;
  }
}

export function remove(id) {
  storage()?.removeItem(PREFIX + id);
}

// Calls changed() when another tab stores or deletes a conversation.
export function watchStore(changed) {
  window.addEventListener("storage", ({ key }) => {
    if (key === null || key.startsWith(PREFIX)) changed();
  });
}
