#include "cli/chat/session.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "cli/prompt_line.h"

namespace octavo {

ChatSession::ChatSession(Generate generate, TextRequest settings)
    : generate_(std::move(generate)), settings_(std::move(settings)) {}

void ChatSession::set_system(std::string text) {
  system_ = std::move(text);
  reset();
}

TextAnswer ChatSession::send(const std::string& text, const Llm::OnText& on_text) {
  // A message without an answer is not part of the conversation: its images stay attached.
  TextAnswer result =
      answer({.images = attached_, .message = text, .answer = {}}, turns_.size(), on_text);
  if (!result.generation.tokens.empty()) attached_.clear();
  return result;
}

TextAnswer ChatSession::retry(const Llm::OnText& on_text) {
  OCTAVO_CHECK(!turns_.empty());
  // The same seed would give the same answer again.
  ++settings_.engine.sampling.seed;
  return answer(turns_.back(), turns_.size() - 1, on_text);
}

TextAnswer ChatSession::answer(Turn turn, size_t before, const Llm::OnText& on_text) {
  TextRequest request = settings_;
  request.messages = nlohmann::ordered_json::array();
  auto add = [&](const char* role, nlohmann::ordered_json content) {
    request.messages.push_back({{"role", role}, {"content", std::move(content)}});
  };
  auto add_message = [&](const Turn& one) {
    add("user", content_with_images(one.message, request.images.size(), one.images.size()));
    request.images.insert(request.images.end(), one.images.begin(), one.images.end());
  };
  if (!system_.empty()) add("system", system_);
  for (size_t i = 0; i < before; ++i) {
    add_message(turns_[i]);
    add("assistant", turns_[i].answer);
  }
  add_message(turn);

  TextAnswer result = generate_(request, on_text);
  if (result.generation.tokens.empty()) return result;
  turn.answer = result.text;
  turns_.resize(before);
  turns_.push_back(std::move(turn));
  return result;
}

std::string ChatSession::markdown(const std::string& title) const {
  std::string text = fmt::format("# {}\n", title);
  auto add = [&](const char* who, const std::string& said) {
    text += fmt::format("\n## {}\n\n{}\n", who, said);
  };
  if (!system_.empty()) add("System", system_);
  for (const Turn& turn : turns_) {
    std::string said;
    for (const api::ImageSource& image : turn.images)
      said += fmt::format("![](<{}>)\n\n", image.field);
    add("User", said + turn.message);
    add("Assistant", turn.answer);
  }
  return text;
}

}  // namespace octavo
