// Conversations as files: JSON and Markdown, both of which can be read back.
import { conversationOf, conversationOfMessages, newConversation, titleOf } from "./conversation.js";

const FORMAT = "octavo-conversations";
const HEADINGS = { system: "System", user: "You", assistant: "Answer" };
const MARK = /^<!-- octavo:(conversation|system|user|assistant)(?: mode=(\w+))? -->$/;

export function toJson(conversations) {
  return `${JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 2)}\n`;
}

// A line of the text that looks like a mark gets a backslash, which fromMarkdown takes off again.
const guard = (text) => text.replace(/^(\\*)<!-- octavo:/gm, "\\$1<!-- octavo:");
const unguard = (text) => text.replace(/^\\(\\*)<!-- octavo:/gm, "$1<!-- octavo:");

function part(role, text) {
  return `<!-- octavo:${role} -->\n## ${HEADINGS[role]}\n\n${guard(text)}\n`;
}

export function toMarkdown(conversation) {
  const { mode, system, turns } = conversation;
  const parts = [`# ${titleOf(conversation)}\n`, `<!-- octavo:conversation mode=${mode} -->\n`];
  if (system) parts.push(part("system", system));
  for (const { prompt, answer } of turns) parts.push(part("user", prompt), part("assistant", answer));
  return parts.join("\n");
}

export function fromMarkdown(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const conversation = newConversation();
  const sections = []; // {role, lines}
  let known = false;
  for (const line of lines) {
    const [, role, mode] = MARK.exec(line) ?? [];
    if (role === "conversation") {
      known = true;
      if (mode === "complete") conversation.mode = mode;
    } else if (role) {
      sections.push({ role, lines: [] });
    } else {
      sections.at(-1)?.lines.push(line);
    }
  }
  if (!known) throw new Error("this Markdown file was not exported by Octavo");
  const messages = sections.map(({ role, lines: its }) => ({
    role, // after the heading and an empty line; before the line end that follows the text
    content: unguard(its.slice(2).join("\n").replace(/\n$/, "")),
  }));
  const { system, turns } = conversationOfMessages(messages);
  const title = /^# (.+)$/.exec(lines[0])?.[1] ?? "";
  return { ...conversation, title, named: title !== "", system, turns };
}

function fromJson(text) {
  const value = JSON.parse(text);
  if (Array.isArray(value.messages)) return [conversationOfMessages(value.messages)];
  if (value.format !== FORMAT) throw new Error("this JSON file holds no conversations");
  return value.conversations.map(conversationOf);
}

// The conversations in a file's text. Each gets a new id, so that importing never overwrites one.
export function conversationsIn(text) {
  const found = text.trimStart().startsWith("{") ? fromJson(text) : [fromMarkdown(text)];
  return found.map((conversation) => ({ ...conversation, id: newConversation().id }));
}

// A file name that every system accepts.
export function fileName(title, ending) {
  const name = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 50).toLowerCase();
  return `${name || "conversation"}.${ending}`;
}
