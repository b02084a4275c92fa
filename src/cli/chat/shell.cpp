#include "cli/chat/shell.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>

#include "cli/chat/terminal_scope.h"
#include "cli/image_file.h"

namespace octavo {
namespace {

constexpr double kNearlyFull = 0.9;

// Expands a leading ~/ as a shell does.
std::string expand_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

// Terminals quote the name of a file that is dropped on them.
std::string without_quotes(const std::string& text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '\'' || text.front() == '"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

struct ChatShell::Command {
  const char* name;
  const char* argument;
  const char* help;
  void (ChatShell::*run)(const std::string& argument);
};

const ChatShell::Command ChatShell::kCommands[] = {
    {"help", "", "show this list", &ChatShell::help},
    {"reset", "", "start a new conversation", &ChatShell::reset},
    {"system", "[TEXT]", "show or set the system message; \"none\" clears it",
     &ChatShell::set_system},
    {"image", "FILE", "add an image to the next message", &ChatShell::attach_image},
    {"retry", "", "answer the last message again", &ChatShell::retry},
    {"save", "FILE", "write the conversation as Markdown", &ChatShell::save},
    {"exit", "", "exit, same as /bye, /quit and Ctrl-D", &ChatShell::leave},
    {"quit", "", nullptr, &ChatShell::leave},
    {"bye", "", nullptr, &ChatShell::leave},
    {"?", "", nullptr, &ChatShell::help},
    {"clear", "", nullptr, &ChatShell::reset},
};

ChatShell::ChatShell(ChatModel model, ChatSession& session, LineReader& reader, ChatScreen& screen,
                     InterruptScope* interrupt)
    : model_(std::move(model)),
      session_(session),
      reader_(reader),
      screen_(screen),
      interrupt_(interrupt) {
  if (interrupt_ != nullptr) session_.set_cancelled([this] { return interrupt_->requested(); });
}

bool ChatShell::run() {
  while (!leaving_) {
    // Discard a Ctrl-C that arrived after the last answer had ended.
    if (interrupt_ != nullptr) interrupt_->clear();
    const ReadLine line = reader_.read(input_.pending() ? Prompt::kContinuation : Prompt::kMessage);
    if (line.kind == ReadLine::Kind::kInterrupt) {
      on_interrupt(line.text);
      continue;
    }
    interrupted_before_ = false;
    if (line.kind == ReadLine::Kind::kEnd) {
      on_end();
    } else if (const auto input = input_.push(line.text)) {
      take(*input);
    }
  }
  return all_answered_;
}

void ChatShell::on_interrupt(const std::string& given_up) {
  const bool idle = given_up.empty() && !input_.pending();
  input_.clear();
  if (idle && interrupted_before_) return leave({});
  if (idle) screen_.hint("Press Ctrl-C again or Ctrl-D to exit.");
  interrupted_before_ = idle;
}

void ChatShell::on_end() {
  // A file may end inside a block; on a terminal, Ctrl-D there means exit.
  if (interrupt_ == nullptr) {
    if (const auto input = input_.finish()) take(*input);
  }
  leave({});
}

void ChatShell::take(const ChatInput& input) {
  if (!input.is_command) {
    return answer([&](const Llm::OnText& on_text) { return session_.send(input.text, on_text); });
  }
  for (const Command& command : kCommands) {
    if (input.command == command.name) return (this->*command.run)(input.text);
  }
  std::string names;
  for (const Command& command : kCommands)
    if (command.help != nullptr) names += fmt::format(" /{}", command.name);
  screen_.error(fmt::format(
      "Unknown command /{}. Commands:{}\nTo send the line as a message, start it with //.",
      input.command, names));
}

void ChatShell::answer(const std::function<TextAnswer(const Llm::OnText&)>& ask) {
  try {
    std::optional<TerminalScope> quiet;
    if (interrupt_ != nullptr) quiet.emplace(echo_off);
    const TextAnswer answer = ask([&](std::string_view text) {
      screen_.answer_piece(text);
      return interrupt_ == nullptr || !interrupt_->requested();
    });
    screen_.end_answer();
    screen_.stats(answer, model_.context);
    warn_of_context(answer);
    screen_.gap();
  } catch (const RequestError& error) {
    all_answered_ = false;
    explain(error);
  }
}

void ChatShell::explain(const RequestError& error) {
  screen_.error(error.what());
  if (error.param() == "prompt") {
    screen_.error(session_.empty()
                      ? "The message is too long for the context; send a shorter one."
                      : "The conversation is too long for the context; /reset starts a new one.");
  } else if (error.param() == "messages" && !session_.system().empty()) {
    screen_.error("If the model does not support system messages, clear it with \"/system none\".");
  }
}

void ChatShell::warn_of_context(const TextAnswer& answer) {
  const size_t used = answer.prompt_tokens.size() + answer.generation.tokens.size();
  const double share = static_cast<double>(used) / model_.context;
  if (share < kNearlyFull) return;
  screen_.warn(fmt::format(
      "The context is {:.0f}% full ({} of {} tokens); /reset starts a new conversation.",
      100 * share, used, model_.context));
}

void ChatShell::help(const std::string&) {
  for (const Command& command : kCommands) {
    if (command.help == nullptr) continue;
    screen_.note(fmt::format("  {:<16}{}", fmt::format("/{} {}", command.name, command.argument),
                             command.help));
  }
  screen_.note(
      "  //...           send a message that starts with a slash\n"
      "  ...\\            continue the message on the next line\n"
      "  \"\"\"             start and end a message of several lines\n"
      "  Ctrl-C          stop the answer; at the prompt, clear the line");
}

void ChatShell::reset(const std::string&) {
  session_.reset();
  screen_.hint("Conversation cleared.");
}

void ChatShell::retry(const std::string&) {
  if (session_.empty()) return screen_.error("There is no message to retry.");
  answer([&](const Llm::OnText& on_text) { return session_.retry(on_text); });
}

void ChatShell::set_system(const std::string& text) {
  if (text.empty()) {
    return screen_.note(session_.system().empty() ? "There is no system message."
                                                  : session_.system());
  }
  session_.set_system(text == "none" ? "" : text);
  screen_.hint(text == "none" ? "The system message is cleared; this is a new conversation."
                              : "The system message is set; this is a new conversation.");
}

void ChatShell::attach_image(const std::string& file) {
  if (!model_.images_refused.empty())
    return screen_.error(fmt::format("Images cannot be sent: {}", model_.images_refused));
  if (file.empty()) return screen_.error("Missing file name: /image FILE");
  try {
    session_.attach(read_image_file(expand_home(without_quotes(file))));
  } catch (const RequestError& error) {
    return screen_.error(error.what());
  }
  const size_t count = session_.attached().size();
  screen_.hint(fmt::format("The next message has {} image{}.", count, count == 1 ? "" : "s"));
}

void ChatShell::save(const std::string& file) {
  if (file.empty()) return screen_.error("Missing file name: /save FILE");
  std::ofstream out(expand_home(file));
  out << session_.markdown("Chat with " + model_.name);
  out.close();
  if (out.fail()) return screen_.error(fmt::format("Cannot write {}.", file));
  screen_.hint(fmt::format("Saved to {}.", file));
}

}  // namespace octavo
