// session.h - one conversation: its messages and the requests made from them. Independent of the
// terminal.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "llm/llm.h"

namespace octavo {

class ChatSession {
 public:
  using Generate = std::function<TextAnswer(const TextRequest&, const Llm::OnText&)>;

  // `settings` is the template of every request; only the messages differ.
  ChatSession(Generate generate, TextRequest settings);

  // Empty: no system message. Starts a new conversation.
  void set_system(std::string text);
  const std::string& system() const { return system_; }

  // Called before each step, including prefill steps; returning true stops the answer.
  void set_cancelled(std::function<bool()> cancelled) {
    settings_.cancelled = std::move(cancelled);
  }

  void reset() {
    turns_.clear();
    attached_.clear();
  }
  bool empty() const { return turns_.empty(); }

  // The image goes before the text of the next message.
  void attach(api::ImageSource image) { attached_.push_back(std::move(image)); }
  const std::vector<api::ImageSource>& attached() const { return attached_; }

  // The message has the attached images. Adds the answer to the conversation, even if it was interrupted. The conversation is unchanged
  // if the answer has no tokens or the request was rejected (RequestError); the images then stay attached.
  TextAnswer send(const std::string& text, const Llm::OnText& on_text);
  // Replaces the last answer by a new one. The conversation must not be empty.
  TextAnswer retry(const Llm::OnText& on_text);

  std::string markdown(const std::string& title) const;

 private:
  struct Turn {
    std::vector<api::ImageSource> images = {};
    std::string message;
    std::string answer;
  };

  // Answers `turn` after the first `before` turns and makes it the last turn.
  TextAnswer answer(Turn turn, size_t before, const Llm::OnText& on_text);

  Generate generate_;
  TextRequest settings_;
  std::string system_;
  std::vector<Turn> turns_;
  std::vector<api::ImageSource> attached_;
};

}  // namespace octavo
