// tool_grammar.h - a grammar of llguidance's Lark that makes a model call tools.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "text/dialects/dialect.h"

namespace octavo {

inline constexpr int kMaxForcedCalls = 8;

struct ToolGrammarOptions {
  int max_calls = kMaxForcedCalls;
  // The id of a marker that is a special token, which text cannot spell.
  std::function<std::optional<TokenId>(std::string_view)> special = nullptr;
  bool thinks_first = false;  // a message of reasoning may come before, in channels
  std::optional<nlohmann::ordered_json> content = {};  // or JSON of this schema instead of calls
};

// One call or more of `tools`, whose arguments fit their schemas, or `content`, and nothing else.
// `tools` may be empty when there is content. Throws RequestError(400, "tools") for a schema that
// the dialect's form cannot be held to.
std::string tool_grammar(const ToolDialect& dialect, const std::vector<Tool>& tools,
                         const ToolGrammarOptions& options);

}  // namespace octavo
