// argument_types.h - whether a tool's schema allows an argument to be a string, for dialects that
// write strings without quotes.
#pragma once

#include <string_view>
#include <vector>

#include "text/dialects/dialect.h"

namespace octavo {

enum class ValueType : uint8_t {
  kString,  // strings only: the text is never parsed as JSON
  kOther,   // never a string
  kEither,
};

// `schema` is a part of `root`, which its references point into. A schema without type information,
// or one that is not understood, gives kEither.
ValueType type_of(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& root);

// The type of a call's argument; an argument without a schema is a string.
ValueType type_of_argument(const std::vector<Tool>& tools, std::string_view tool,
                           std::string_view argument);

// An argument's text as JSON. Text that is not valid JSON becomes a string, except for Python's
// True, False and None.
std::string json_of_value(std::string_view text, ValueType type);

// The part of `root` that "#/.." refers to; null if there is none.
const nlohmann::ordered_json* find_reference(const nlohmann::ordered_json& root,
                                             const nlohmann::ordered_json& reference);

}  // namespace octavo
