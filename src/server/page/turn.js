// One exchange: the prompt, the answer as it streams, and its figures.
import { copies, make } from "./dom.js";
import { figureList } from "./figures.js";
import { thumbnail } from "./images.js";
import { MarkdownView } from "./markdown.js";

const LABELS = { chat: ["You", "Answer"], complete: ["Prompt", "Completion"] };

// Shows text as it is, for completions. Grows in place, so that a selection survives streaming.
class PlainView {
  constructor(element) {
    this.node = document.createTextNode("");
    this.element = element;
  }

  show(text) {
    if (text !== "" && !this.node.parentNode) this.element.append(make("div", { className: "plain" }, this.node));
    this.node.appendData(text.slice(this.node.length));
  }
}

export class Turn {
  text = ""; // the answer so far
  reasoning = ""; // what the model wrote before it
  measured = null; // set when the answer ended
  error = null; // message

  // message: {prompt, images, lostImages}. actions: {edit(turn), again(turn)}
  constructor(mode, { prompt, images = [], lostImages = 0 }, actions) {
    this.prompt = prompt;
    this.images = images;
    this.lostImages = lostImages;
    const [asked, answered] = LABELS[mode];
    this.answer = make("div", { className: "text answer" });
    this.view = mode === "chat" ? new MarkdownView(this.answer) : new PlainView(this.answer);
    this.thought = make("div", { className: "plain" });
    this.thinking = make("details", { className: "thinking", hidden: true }, make("summary", {}, "Reasoning"), this.thought);
    this.waiting = make("p", { className: "waiting", hidden: true });
    this.trouble = make("div");
    this.notes = make("dl", { className: "figures" });
    const question = make("div", { className: "text question" }, this.pictures(), make("div", { className: "plain" }, prompt));
    const button = (label, className, onclick) => make("button", { type: "button", className, onclick }, label);
    this.buttons = make("div", { className: "actions", hidden: true },
      copies(button("Copy", "quiet", null), () => this.text),
      button("Edit", "quiet idle-only", () => actions.edit(this)),
      button("Regenerate", "quiet idle-only last-only", () => actions.again(this)));
    this.element = make("article", { className: "turn answering" },
      make("h2", {}, asked), question,
      make("h2", { className: "answerer" }, answered),
      make("div", {}, this.thinking, this.waiting, this.answer, this.trouble, make("div", { className: "foot" }, this.notes, this.buttons)));
  }

  pictures() {
    if (this.lostImages > 0) return make("p", { className: "waiting" }, "The images of this message were too large to be stored.");
    if (this.images.length === 0) return null;
    return make("div", { className: "pictures" }, ...this.images.map((image, index) => thumbnail(image, index + 1)));
  }

  // What the answer is waiting for; "" when it no longer does.
  wait(text) {
    this.waiting.hidden = text === "" || this.measured !== null;
    this.waiting.textContent = text;
  }

  append(text) {
    this.wait("");
    this.text += text;
    this.frame ??= requestAnimationFrame(() => this.draw(false));
  }

  think(text) {
    this.wait("");
    this.reasoning += text;
    this.frame ??= requestAnimationFrame(() => this.draw(false));
  }

  draw(complete) {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.following(() => {
      this.thinking.hidden = this.reasoning === "";
      this.thought.textContent = this.reasoning;
      this.view.show(this.text, complete);
    });
  }

  // Does change, and stays at the end of the transcript if the reader was there.
  following(change) {
    const view = this.element.closest("#transcript");
    const atEnd = view && view.scrollHeight - view.scrollTop - view.clientHeight < 60;
    change();
    if (atEnd) view.scrollTop = view.scrollHeight;
  }

  // Ends the answer. error is {message, offer: {label, act} or null}, or null.
  end(measured, error) {
    this.measured = measured;
    this.wait("");
    this.error = error?.message ?? null;
    this.draw(true);
    this.following(() => this.finish(error));
  }

  finish(error) {
    this.element.classList.remove("answering");
    this.element.classList.toggle("left-out", this.text === "");
    this.buttons.hidden = false;
    this.buttons.firstChild.hidden = this.text === "";
    if (this.measured && (this.text !== "" || !error)) this.notes.append(...figureList(this.measured));
    if (error) {
      const offer = error.offer && make("button", { type: "button", onclick: error.offer.act }, error.offer.label);
      this.trouble.append(make("div", { className: "error" }, make("p", {}, error.message), offer ?? null));
    }
  }

  // What store.js keeps.
  record() {
    const { prompt, images, lostImages, text: answer, reasoning, measured, error } = this;
    return { prompt, images, lostImages, answer, reasoning, measured, error };
  }

  static from(mode, { answer, reasoning, measured, error, ...message }, actions) {
    const turn = new Turn(mode, message, actions);
    turn.text = answer;
    turn.reasoning = reasoning;
    turn.end(measured, error === null ? null : { message: error, offer: null });
    return turn;
  }
}
