// structured_output.h - the fields that constrain the output: OpenAI's response_format and vLLM's
// structured_outputs.
#pragma once

#include <optional>
#include <string>

#include "api/fields/json_values.h"
#include "text/grammar.h"

namespace octavo::api {

inline constexpr size_t kMaxGrammarBytes = 128u << 10;

// A constraint, and the field that requested it.
struct StructuredOutput {
  GrammarSource grammar = {};
  std::string field = {};
};

Json response_format_schema();
Json structured_outputs_schema();
// nullopt: no constraint. Both throw RequestError(400).
std::optional<StructuredOutput> read_response_format(const Json& value);
std::optional<StructuredOutput> read_structured_outputs(const Json& value);

}  // namespace octavo::api
