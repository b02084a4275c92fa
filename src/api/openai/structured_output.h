// structured_output.h - the fields that say what form an answer has: OpenAI's response_format and
// vLLM's structured_outputs.
#pragma once

#include <optional>
#include <string>

#include "api/fields/json_values.h"
#include "text/grammar.h"

namespace octavo::api {

inline constexpr size_t kMaxGrammarBytes = 128u << 10;

// A form, and the field that asked for it.
struct StructuredOutput {
  GrammarSource grammar = {};
  std::string field = {};
};

Json response_format_schema();
Json structured_outputs_schema();
// None: any text. Both throw RequestError(400).
std::optional<StructuredOutput> read_response_format(const Json& value);
std::optional<StructuredOutput> read_structured_outputs(const Json& value);

}  // namespace octavo::api
