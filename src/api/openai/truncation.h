// truncation.h - the fields that shorten the texts of requests that only read prompts, and what they do
// to tokens. Any thread.
#pragma once

#include <optional>
#include <vector>

#include "api/fields/body_fields.h"
#include "api/served_model.h"

namespace octavo::api {

struct Truncation {
  std::optional<int> tokens = {};  // truncate_prompt_tokens; -1: as many as fit
  bool keep_end = false;           // truncate at the beginning

  // The most tokens of a prompt; nothing: prompts are not truncated.
  std::optional<size_t> keep(const ServedModel& model) const;
};

const FieldTable<Truncation>& truncation_fields();

// Removes tokens of a text from the prompt, so that `keep` remain. `text`: the tokens of the text that
// stands last in the prompt. Special tokens around it stay: models may pool the last one. Throws
// RequestError(400) if no token of the text would be left.
std::vector<TokenId> without_excess(std::vector<TokenId> prompt, const std::vector<TokenId>& text,
                                    size_t keep, bool keep_end);

}  // namespace octavo::api
