// What a conversation is made of, checked wherever one comes from storage or from a file.

const TITLE_CHARACTERS = 60;
const DATA_URL = /^data:image\/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+=*$/;
export const MOST_IMAGES = 64; // of a request, as the server has it

// Whether this is an image as a message holds it. Nothing else may become the address of a picture.
export const isImage = (value) => typeof value === "string" && DATA_URL.test(value);

// randomUUID exists only on https and localhost; this page is also served over plain http.
function newId() {
  return [...crypto.getRandomValues(new Uint8Array(9))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newConversation(mode = "chat", system = "") {
  const now = Date.now();
  return { id: newId(), title: "", named: false, mode, system, created: now, updated: now, turns: [] };
}

// The title: the one that was given, otherwise the start of the first prompt.
export function titleOf({ title, named, turns }) {
  if (named && title) return title;
  const first = (turns[0]?.prompt ?? "").replace(/\s+/g, " ").trim();
  if (first === "") return turns[0]?.images?.length ? "Image" : "New conversation";
  return first.length > TITLE_CHARACTERS ? `${first.slice(0, TITLE_CHARACTERS - 1).trimEnd()}…` : first;
}

const text = (value) => (typeof value === "string" ? value : "");
const time = (value) => (Number.isFinite(value) ? value : Date.now());
const count = (value) => (Number.isFinite(value) ? value : 0);

function measuredOf(value) {
  if (typeof value !== "object" || value === null) return null;
  const { usage } = value;
  return {
    firstTokenMs: Number.isFinite(value.firstTokenMs) ? value.firstTokenMs : null,
    decodeMs: count(value.decodeMs),
    pieces: count(value.pieces),
    usage: typeof usage === "object" && usage !== null ? {
      prompt_tokens: count(usage.prompt_tokens),
      completion_tokens: count(usage.completion_tokens),
      prompt_tokens_details: { cached_tokens: count(usage.prompt_tokens_details?.cached_tokens) },
    } : null,
    finish: typeof value.finish === "string" ? value.finish : null,
    model: typeof value.model === "string" ? value.model : undefined,
  };
}

const imagesOf = (value) => (Array.isArray(value) ? value.filter(isImage).slice(0, MOST_IMAGES) : []);

function turnOf(value) {
  if (typeof value?.prompt !== "string") throw new Error("a turn without a prompt");
  return {
    prompt: value.prompt, images: imagesOf(value.images), lostImages: count(value.lostImages), answer: text(value.answer), reasoning: text(value.reasoning),
    measured: measuredOf(value.measured), error: typeof value.error === "string" ? value.error : null,
  };
}

// A conversation with the fields of value that are known and have the right type. Throws if it is not a conversation.
export function conversationOf(value) {
  if (!Array.isArray(value?.turns)) throw new Error("no turns");
  return {
    id: /^[0-9a-f]{8,64}$/.test(value.id) ? value.id : newId(),
    title: text(value.title), named: value.named === true,
    mode: value.mode === "complete" ? "complete" : "chat",
    system: text(value.system), created: time(value.created), updated: time(value.updated),
    turns: value.turns.map(turnOf),
  };
}

// The text and the images of a message. Throws if it has anything else.
function readContent(content) {
  if (typeof content === "string") return { prompt: content, images: [] };
  if (!Array.isArray(content)) throw new Error("a message whose content is not text");
  const read = { prompt: "", images: [] };
  for (const { type, text: words, image_url: image } of content) {
    const url = image?.url ?? image;
    if (type === "text" && typeof words === "string") read.prompt += words;
    else if (type === "image_url" && isImage(url)) read.images.push(url);
    else throw new Error("a message with a part that is neither text nor an image in it");
  }
  return read;
}

// A conversation from messages as chat APIs have them. Each user message starts a turn.
export function conversationOfMessages(messages) {
  const conversation = newConversation();
  for (const { role, content } of messages) {
    const { prompt, images } = readContent(content);
    const last = conversation.turns.at(-1);
    if (role === "system") conversation.system = prompt;
    else if (role === "user") conversation.turns.push(turnOf({ prompt, images }));
    else if (role === "assistant" && last) last.answer += prompt;
    else throw new Error(`a message of the role ${role}`);
  }
  return conversation;
}
