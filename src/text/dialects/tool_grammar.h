// tool_grammar.h - builds a Lark grammar for llguidance that forces a model to call tools.
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
  // Returns the id of a marker that is a special token, which ordinary text cannot produce.
  std::function<std::optional<TokenId>(std::string_view)> special = nullptr;
  bool thinks_first = false;  // dialects with channels: a reasoning message may come first
  std::optional<nlohmann::ordered_json> content =
      {};  // alternatively, JSON that matches this schema
};

// Allows only one or more calls of `tools` whose arguments match their schemas, or `content`.
// `tools` may be empty if content is set. Throws RequestError(400, "tools") for a schema that
// cannot be enforced in the dialect's form.
std::string tool_grammar(const ToolDialect& dialect, const std::vector<Tool>& tools,
                         const ToolGrammarOptions& options);

}  // namespace octavo
