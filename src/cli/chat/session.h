// session.h - one conversation: what was said, and what the model is asked next. Knows no
// terminal.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "llm/llm.h"

namespace octavo {

class ChatSession {
 public:
  using Generate = std::function<TextAnswer(const TextRequest&, const Llm::OnText&)>;

  // `settings` gives each request all but its messages.
  ChatSession(Generate generate, TextRequest settings);

  // An empty text means none. Starts a new conversation.
  void set_system(std::string text);
  const std::string& system() const { return system_; }

  // Asked before each step of an answer, also while a long prompt is read; true ends it.
  void set_cancelled(std::function<bool()> cancelled) {
    settings_.cancelled = std::move(cancelled);
  }

  void reset() { turns_.clear(); }
  bool empty() const { return turns_.empty(); }

  // The answer becomes part of the conversation, also one that was ended midway. When it was ended
  // before its first token, or refused (RequestError), the conversation is as it was.
  TextAnswer send(const std::string& text, const Llm::OnText& on_text);
  // Another answer to the last message, in place of the one given. Not on an empty conversation.
  TextAnswer retry(const Llm::OnText& on_text);

  std::string markdown(const std::string& title) const;

 private:
  struct Turn {
    std::string message;
    std::string answer;
  };

  // Answers `turn` behind the first `before` turns, then makes it the last one.
  TextAnswer answer(Turn turn, size_t before, const Llm::OnText& on_text);

  Generate generate_;
  TextRequest settings_;
  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace octavo
