#include "api/openai/truncation.h"

#include <algorithm>

#include "api/fields/field_kinds.h"

namespace octavo::api {

const FieldTable<Truncation>& truncation_fields() {
  static const FieldTable<Truncation> table = {
      used<Truncation>("truncate_prompt_tokens",
                       {{"anyOf", {integer_schema(-1, -1), integer_schema(1, kMaxInt)}}},
                       "Truncate longer texts to this many tokens; -1: to as many as fit",
                       [](const Json& v, Truncation& t) {
                         t.tokens = to_int(v, "truncate_prompt_tokens", -1, kMaxInt);
                         if (*t.tokens == 0) refuse("truncate_prompt_tokens", "must not be 0");
                       }),
      used<Truncation>("truncation_side", one_of_schema({"right", "left"}),
                       "Side that is truncated: right (the default) keeps the beginning",
                       [](const Json& v, Truncation& t) {
                         t.keep_end = to_choice(v, "truncation_side", "right", "left");
                       }),
  };
  return table;
}

std::optional<size_t> Truncation::keep(const ServedModel& model) const {
  if (!tokens) return std::nullopt;
  return static_cast<size_t>(*tokens < 0 ? model.longest_pooled() : *tokens);
}

std::vector<TokenId> without_excess(std::vector<TokenId> prompt, const std::vector<TokenId>& text,
                                    size_t keep, bool keep_end) {
  if (prompt.size() <= keep) return prompt;
  const size_t excess = prompt.size() - keep;
  const auto found = std::find_end(prompt.begin(), prompt.end(), text.begin(), text.end());
  if (excess >= text.size() || found == prompt.end())
    refuse("truncate_prompt_tokens", "leaves no tokens for the text");
  const auto first = keep_end ? found : found + static_cast<std::ptrdiff_t>(text.size() - excess);
  prompt.erase(first, first + static_cast<std::ptrdiff_t>(excess));
  return prompt;
}

}  // namespace octavo::api
