// chat_dialect.h - how a model's chats are to be read: chosen at start-up, from its template and
// vocabulary or by flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generation/model_text.h"
#include "text/dialects/dialect.h"

namespace octavo {

struct ChatDialectOptions {
  std::string tool_call_parser = "auto";  // or "none", or a dialect's name
  std::string reasoning_parser = "auto";
  std::optional<bool> thinking = {};        // unless a request says otherwise
  std::optional<int> thinking_budget = {};  // tokens of reasoning, likewise
};

struct ChatDialect {
  Dialect dialect = {};
  // Else tools are told to the model by a system message, and calls and results are shown as text.
  bool template_has_tools = false;
  std::vector<TokenId> markers = {};      // of the dialect's, those that are special tokens
  std::vector<TokenId> stop_tokens = {};  // the model's own
  std::optional<bool> thinking = {};
  std::optional<int> thinking_budget = {};

  // For the start-up summary.
  std::string describe() const;
};

// Throws SetupError for a name that no dialect has.
ChatDialect choose_chat_dialect(const ModelText& text, std::vector<TokenId> stop_tokens,
                                const ChatDialectOptions& options);

enum class ReasoningStart : uint8_t {
  kNone,     // the model does not reason, or was told not to
  kInside,   // the prompt opened it
  kMayOpen,  // the model may
};

// What a rendered prompt leaves the model with.
ReasoningStart reasoning_start(const Dialect& dialect, std::string_view prompt);

}  // namespace octavo
