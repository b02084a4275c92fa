#include "cli/chat/input.h"

#include <utility>

#include "text/utf8.h"

namespace octavo {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

std::optional<ChatInput> message(std::string_view text) {
  if (strip_space(text).empty()) return std::nullopt;
  return ChatInput{.is_command = false, .command = {}, .text = std::string(text)};
}

std::optional<ChatInput> message_or_command(std::string_view text) {
  text = strip_space(text);
  if (text.starts_with("//")) return message(text.substr(1));
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  // A second slash in the word means a path, not a command.
  if (!text.starts_with('/') || word.find('/', 1) != text.npos) return message(text);
  return ChatInput{.is_command = true,
                   .command = std::string(word.substr(1)),
                   .text = std::string(strip_space(text.substr(word.size())))};
}

}  // namespace

std::optional<ChatInput> InputAssembler::push(std::string_view raw) {
  // Input files may contain any bytes; from here on the text is valid UTF-8.
  const std::string line = replace_invalid_utf8(raw);
  if (state_ == State::kBlock) return push_block(line);
  const std::string_view stripped = strip_space(line);
  if (state_ == State::kStart && stripped.starts_with(kQuotes)) {
    state_ = State::kBlock;
    return push_block(stripped.substr(kQuotes.size()));
  }
  if (line.ends_with('\\')) {
    state_ = State::kContinued;
    text_ += line.substr(0, line.size() - 1) + '\n';
    return std::nullopt;
  }
  text_ += line;
  return complete();
}

std::optional<ChatInput> InputAssembler::push_block(std::string_view line) {
  const std::string_view end = strip_space_right(line);
  if (end.ends_with(kQuotes)) {
    text_ += end.substr(0, end.size() - kQuotes.size());
    return complete();
  }
  // A first line of only quotes does not add a line to the message.
  if (!line.empty() || !text_.empty()) (text_ += line) += '\n';
  return std::nullopt;
}

std::optional<ChatInput> InputAssembler::finish() { return pending() ? complete() : std::nullopt; }

std::optional<ChatInput> InputAssembler::complete() {
  const bool block = state_ == State::kBlock;
  std::string text = std::move(text_);
  clear();
  if (!block) return message_or_command(text);
  if (text.ends_with('\n')) text.pop_back();
  return message(text);
}

}  // namespace octavo
