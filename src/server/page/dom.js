// Builds elements. Strings become text nodes, so nothing a model says is ever read as HTML.

export const byId = (id) => document.getElementById(id);

// make("p", {className: "x", onclick: f}, "text", child): properties are set, not attributes.
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function say(text) {
  byId("status").textContent = text;
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Plain http on another machine has no clipboard API.
  const area = make("textarea", { value: text, className: "unseen" });
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("copying was refused");
}

// Makes a button copy text() and say so for a moment.
export function copies(button, text) {
  const label = button.textContent;
  let timer;
  button.addEventListener("click", async () => {
    const outcome = await copy(text()).then(() => "Copied", () => "Not copied");
    button.focus();
    button.textContent = outcome;
    say(outcome);
    clearTimeout(timer);
    timer = setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}
