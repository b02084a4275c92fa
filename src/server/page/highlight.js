// Colours code. The library and each language are loaded when the first block needs them.

const FOLDER = "./vendor/highlight/";
// Language: other names for it.
const LANGUAGES = {
  bash: ["sh", "shell", "zsh", "console"], cpp: ["c", "c++", "cc", "h", "hpp"], csharp: ["cs", "c#"], css: [], diff: ["patch"],
  go: ["golang"], ini: ["toml"], java: [], javascript: ["js", "jsx", "mjs"], json: ["jsonc"], python: ["py", "python3"],
  rust: ["rs"], sql: [], typescript: ["ts", "tsx"], xml: ["html", "svg"], yaml: ["yml"],
};
const LONGEST = 50000; // characters; longer code stays plain, so that the page stays responsive
const NAMES = new Map(Object.entries(LANGUAGES).flatMap(([name, others]) => [name, ...others].map((known) => [known, name])));
let library = null; // promise

async function load(language) {
  library ??= import(`${FOLDER}core.min.js`).then((module) => module.default);
  const hljs = await library;
  if (!hljs.getLanguage(language)) {
    const { default: grammar } = await import(`${FOLDER}${language}.min.js`);
    hljs.registerLanguage(language, grammar);
  }
  return hljs;
}

function nodesOf(children) {
  return children.map((child) => {
    if (typeof child === "string") return child;
    const element = document.createElement("span");
    if (child.scope) element.className = `is-${child.scope.split(".")[0]}`;
    element.append(...nodesOf(child.children));
    return element;
  });
}

// figure: a block of code as markdown.js builds it, complete. Does nothing for an unknown language.
export async function highlight(figure) {
  const language = NAMES.get(figure.dataset.language.toLowerCase());
  const code = figure.querySelector("code");
  const text = code.textContent;
  if (!language || figure.dataset.coloured || text.length > LONGEST) return;
  figure.dataset.coloured = "yes";
  try {
    const hljs = await load(language);
    const nodes = nodesOf(hljs.highlight(text, { language, ignoreIllegals: true })._emitter.rootNode.children);
    if (code.textContent === text) code.replaceChildren(...nodes);
  } catch {
    delete figure.dataset.coloured; // not loaded, or not understood: plain text is fine
  }
}
