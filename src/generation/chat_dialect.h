// chat_dialect.h - the dialect of a model's chats, chosen at start-up from its template and
// vocabulary or by flags.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generation/model_text.h"
#include "text/dialects/dialect.h"
#include "text/special_token_marks.h"

namespace octavo {

struct ChatDialectOptions {
  std::string tool_call_parser = "auto";  // or "none", or a dialect's name
  std::string reasoning_parser = "auto";
  std::optional<bool> thinking = {};        // default; a request may override it
  std::optional<int> thinking_budget = {};  // tokens of reasoning; default, as above
  bool allow_special_tokens_in_content = false;
};

struct ChatDialect {
  Dialect dialect = {};
  // Otherwise tools are described in a system message, and calls and results are written as text.
  bool template_has_tools = false;
  std::vector<TokenId> markers = {};      // markers of the dialect that are special tokens
  std::vector<TokenId> stop_tokens = {};  // the model's own
  std::optional<bool> thinking = {};
  std::optional<int> thinking_budget = {};
  // Marks special tokens in the content of a chat; null: they are recognised there.
  std::shared_ptr<const SpecialTokenMarks> content_marks = nullptr;

  // For the start-up summary.
  std::string describe() const;
};

// Throws SetupError for an unknown name.
ChatDialect choose_chat_dialect(const ModelText& text, std::vector<TokenId> stop_tokens,
                                const ChatDialectOptions& options);

enum class ReasoningStart : uint8_t {
  kNone,     // no reasoning, or it is switched off
  kInside,   // the prompt has opened it
  kMayOpen,  // the model may open it
};

// The state of reasoning at the end of a rendered prompt.
ReasoningStart reasoning_start(const Dialect& dialect, std::string_view prompt);

}  // namespace octavo
