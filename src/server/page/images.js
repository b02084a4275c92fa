// The images of the message that is being written: chosen, dropped or pasted, and shown above it until it is sent.
import { isImage, MOST_IMAGES } from "./conversation.js";
import { byId, make, say } from "./dom.js";
import { takesImages } from "./models.js";

const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const LARGEST_FILE = 20e6; // bytes; a request may have 32 MiB
const composer = byId("composer");
const file = byId("image-file");
let images = []; // data URLs

export const attached = () => images;

function changed(note = "") {
  byId("image-note").textContent = note;
  byId("image-note").hidden = note === "";
  byId("images").replaceChildren(...images.map(preview));
  byId("images").hidden = images.length === 0;
  document.dispatchEvent(new Event("imagechange"));
}

export function attach(list) {
  images = [...list];
  changed();
}

// A small picture of the number-th image of a message.
export function thumbnail(image, number) {
  return make("img", { src: image, alt: `Image ${number}` });
}

function preview(image, index) {
  const remove = make("button", { type: "button", className: "quiet" }, "Remove");
  remove.setAttribute("aria-label", `Remove image ${index + 1}`);
  remove.addEventListener("click", () => {
    images = images.filter((_, other) => other !== index);
    changed();
    say("Image removed");
    byId("prompt").focus();
  });
  return make("li", {}, thumbnail(image, index + 1), remove);
}

const read = (one) => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.addEventListener("load", () => done(reader.result));
  reader.addEventListener("error", () => fail(reader.error));
  reader.readAsDataURL(one);
});

// Why a file cannot be sent, or "".
function refusal({ type, size, name }) {
  if (!TYPES.includes(type)) return `${name || "This file"} is not a PNG, JPEG, WebP or GIF image.`;
  if (size > LARGEST_FILE) return `${name || "This image"} is larger than 20 MB.`;
  return "";
}

async function add(files) {
  if (!takesImages()) return changed("This model does not take images.");
  let note = "";
  for (const one of files) {
    const reason = images.length >= MOST_IMAGES ? `A message has at most ${MOST_IMAGES} images.` : refusal(one);
    const image = reason === "" ? await read(one).catch(() => "") : "";
    if (isImage(image)) images = [...images, image];
    else note = reason || `${one.name} cannot be read.`;
  }
  changed(note);
  say(note || `Images in this message: ${images.length}`);
  return undefined;
}

const chat = () => !composer.classList.contains("plain-text");
const hasFiles = ({ types }) => [...types].includes("Files");

byId("image-button").addEventListener("click", () => file.click());
file.addEventListener("change", async () => {
  await add([...file.files]);
  file.value = ""; // so that the same file can be chosen again
  byId("prompt").focus();
});
document.addEventListener("paste", (event) => {
  const files = [...event.clipboardData.files];
  // Spreadsheets put a picture next to the text.
  if (files.length === 0 || event.clipboardData.types.includes("text/plain") || !chat()) return;
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  add(files);
});
document.addEventListener("dragover", (event) => {
  if (!hasFiles(event.dataTransfer)) return;
  event.preventDefault(); // otherwise the browser would leave the page for the file
  composer.classList.toggle("dropping", chat());
});
for (const end of ["dragleave", "dragend", "drop"]) {
  document.addEventListener(end, (event) => {
    if (end !== "dragleave" || event.relatedTarget === null) composer.classList.remove("dropping");
  });
}
document.addEventListener("drop", (event) => {
  if (!hasFiles(event.dataTransfer)) return;
  event.preventDefault();
  if (chat()) add([...event.dataTransfer.files]);
});
