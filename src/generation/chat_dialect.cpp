#include "generation/chat_dialect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "text/utf8.h"

namespace octavo {
namespace {

// `auto`: the detected dialect; `none`: null.
template <typename Table, typename Find, typename Names>
const Table* choose(const std::string& name, const char* flag, const Table* detected, Find find,
                    Names names) {
  if (name == "auto") return detected;
  if (name == "none") return nullptr;
  const Table* table = find(name);
  if (table == nullptr)
    throw SetupError(
        fmt::format("{} {}: is not one of auto, none, {}", flag, name, fmt::join(names(), ", ")));
  return table;
}

// Whether a marker keeps a special token from being recognised and leaves no trace itself. Not so if
// the tokenizer's normalizer deletes or changes the marker.
bool can_mark(const Tokenizer& tokenizer, const std::vector<std::string>& tokens) {
  constexpr char32_t kMarker = 0xFDD0;
  const std::string marker = "\xEF\xB7\x90";
  if (tokenizer.encode_marked("a" + marker + "b", kMarker, false) != tokenizer.encode("ab", false))
    return false;
  const auto ascii = std::ranges::find_if(tokens, [](const std::string& token) {
    return token.size() > 1 && static_cast<unsigned char>(token.front()) < 0x80;
  });
  if (ascii == tokens.end()) return true;
  const std::string marked = ascii->substr(0, 1) + marker + ascii->substr(1);
  const auto ids = tokenizer.encode_marked(marked, kMarker, false);
  return std::ranges::none_of(ids, [&](TokenId id) { return tokenizer.is_special(id); });
}

// Reasoning markers stay: templates look for them in earlier answers.
std::shared_ptr<const SpecialTokenMarks> content_marks_of(const ModelText& text,
                                                          const Dialect& dialect) {
  std::vector<std::string> tokens = text.tokenizer->special_tokens();
  if (const ReasoningDialect* reasoning = dialect.reasoning) {
    std::erase_if(tokens, [&](const std::string& token) {
      return token == reasoning->open || token == reasoning->close ||
             token == reasoning->open_token;
    });
  }
  if (!can_mark(*text.tokenizer, tokens)) {
    if (text.chat_template == nullptr) return nullptr;  // an encoder's, most likely
    spdlog::warn(
        "special tokens in the content of chats are recognised: this tokenizer cannot encode them "
        "as text");
    return nullptr;
  }
  return std::make_shared<const SpecialTokenMarks>(tokens);
}

}  // namespace

ChatDialect choose_chat_dialect(const ModelText& text, std::vector<TokenId> stop_tokens,
                                const ChatDialectOptions& options) {
  ChatDialect chosen{.stop_tokens = std::move(stop_tokens),
                     .thinking = options.thinking,
                     .thinking_budget = options.thinking_budget};
  std::string source;
  if (text.chat_template != nullptr)
    source = text.chat_template->source().source +
             text.chat_template->source().tool_use_source.value_or("");
  const Dialect detected = detect_dialect(source);
  // If the template supports tools but its call format is unknown, it is not given any tools.
  const bool forced = options.tool_call_parser != "auto" && options.tool_call_parser != "none";
  chosen.template_has_tools =
      source.find("tools") != std::string::npos && (detected.tools != nullptr || forced);
  const ToolDialect* usual = detected.tools != nullptr ? detected.tools : &kHermes;
  chosen.dialect.tools = choose(options.tool_call_parser, "--tool-call-parser", usual,
                                find_tool_dialect, tool_dialect_names);
  chosen.dialect.reasoning =
      choose(options.reasoning_parser, "--reasoning-parser", detected.reasoning,
             find_reasoning_dialect, reasoning_dialect_names);
  if (chosen.dialect.tools == &kHarmony || chosen.dialect.reasoning == &kHarmonyReasoning)
    chosen.dialect.channels = &kHarmonyChannels;
  for (const std::string_view marker : chosen.dialect.markers()) {
    const auto id = text.tokenizer->token_id(marker);
    if (id && text.tokenizer->is_special(*id)) chosen.markers.push_back(*id);
  }
  if (!options.allow_special_tokens_in_content)
    chosen.content_marks = content_marks_of(text, chosen.dialect);
  return chosen;
}

std::string ChatDialect::describe() const {
  return fmt::format("{}{}; reasoning {}", dialect.tools == nullptr ? "none" : dialect.tools->name,
                     dialect.tools == nullptr || template_has_tools
                         ? ""
                         : " (in a system message: the chat template does not support tools)",
                     dialect.reasoning == nullptr ? "none" : dialect.reasoning->name);
}

ReasoningStart reasoning_start(const Dialect& dialect, std::string_view prompt) {
  const ReasoningDialect* reasoning = dialect.reasoning;
  if (reasoning == nullptr) return ReasoningStart::kNone;
  const std::string_view end = strip_space_right(prompt);
  if (end.ends_with(reasoning->open)) return ReasoningStart::kInside;
  if (end.ends_with(reasoning->close)) return ReasoningStart::kNone;
  return reasoning->assumed_open ? ReasoningStart::kInside : ReasoningStart::kMayOpen;
}

}  // namespace octavo
