#include "cli/chat/screen.h"

#include <fmt/format.h>

namespace octavo {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, the C1 controls: C2 80 to C2 9F in UTF-8.
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      ++i;
    } else if ((byte >= 0x20 && byte != 0x7F) || byte == '\n' || byte == '\t') {
      clean += text[i];
    }
  }
  return clean;
}

std::string stats_of(const TextAnswer& answer, int context) {
  const Generation& g = answer.generation;
  std::string text = counted(g.tokens.size(), "token");
  if (g.tokens.size() > 1 && g.decode_seconds > 0) {
    text +=
        fmt::format(", {:.1f} tok/s", static_cast<double>(g.tokens.size() - 1) / g.decode_seconds);
  }
  text += fmt::format("; prompt {}", counted(answer.prompt_tokens.size(), "token"));
  if (g.cached_tokens > 0) text += fmt::format(", {} cached", g.cached_tokens);
  if (g.finish_reason == FinishReason::kAbort) text += "; stopped";
  if (g.finish_reason == FinishReason::kLength) {
    const bool full = answer.prompt_tokens.size() + g.tokens.size() >= static_cast<size_t>(context);
    text += full ? "; cut off: the context is full" : "; cut off: --max-tokens";
  }
  return text;
}

void ChatScreen::answer_piece(std::string_view text) {
  const std::string shown = options_.terminal ? without_controls(text) : std::string(text);
  if (shown.empty()) return;
  std::fwrite(shown.data(), 1, shown.size(), options_.answers);
  std::fflush(options_.answers);
  at_line_start_ = shown.back() == '\n';
}

void ChatScreen::end_answer() {
  // On a terminal, end the line unless the answer did; in a pipe, always append a newline.
  if (!options_.terminal || !at_line_start_) fmt::print(options_.answers, "\n");
  std::fflush(options_.answers);
  at_line_start_ = true;
}

void ChatScreen::gap() {
  if (options_.terminal) fmt::print(options_.answers, "\n");
}

void ChatScreen::stats(const TextAnswer& answer, int context) { hint(stats_of(answer, context)); }

void ChatScreen::note(std::string_view text) { line("", text); }
void ChatScreen::hint(std::string_view text) {
  if (options_.watched) line(kDim, text);
}

void ChatScreen::warn(std::string_view text) { line(kYellow, text); }
void ChatScreen::error(std::string_view text) { line(kRed, text); }

void ChatScreen::line(std::string_view colour, std::string_view text) {
  const bool coloured = options_.colour && !colour.empty();
  fmt::print(options_.notes, "{}{}{}\n", coloured ? colour : "", text, coloured ? kPlain : "");
  std::fflush(options_.notes);
}

}  // namespace octavo
