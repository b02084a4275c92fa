// The API key: asked for in a dialog, kept in sessionStorage, sent to this server only.
import { byId } from "./dom.js";

const NAME = "octavo-api-key";
const dialog = byId("key-dialog");
const field = byId("key");
let asking = null; // one dialog, however many requests were refused

export const apiKey = () => sessionStorage.getItem(NAME) ?? "";
export const authorization = () => (apiKey() ? { Authorization: `Bearer ${apiKey()}` } : {});

function showState() {
  byId("key-button").textContent = apiKey() ? "API key: set" : "API key";
}

function store(key) {
  if (key) sessionStorage.setItem(NAME, key);
  else sessionStorage.removeItem(NAME);
  showState();
  document.dispatchEvent(new Event("keychange"));
}

// Resolves to true when the person gave a key, to false when they would not.
export function askForKey(reason) {
  asking ??= new Promise((resolve) => {
    byId("key-reason").textContent = reason;
    field.value = apiKey();
    dialog.returnValue = "";
    dialog.showModal();
    field.select();
    dialog.addEventListener("close", () => {
      const given = dialog.returnValue === "given";
      if (given) store(field.value.trim());
      field.value = "";
      asking = null;
      resolve(given);
    }, { once: true });
  });
  return asking;
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  dialog.close("given");
});
byId("key-cancel").addEventListener("click", () => dialog.close());
byId("key-button").addEventListener("click", () => {
  askForKey("Sent as a bearer token. Leave it empty if the server requires none.");
});
showState();
