// argument_types.h - what a tool's schema lets an argument be, as far as a dialect needs it that
// writes strings without quotes.
#pragma once

#include <string_view>
#include <vector>

#include "text/dialects/dialect.h"

namespace octavo {

enum class ValueType : uint8_t {
  kString,  // a string and nothing else: never taken for anything
  kOther,   // no string
  kEither,
};

// `schema` is a part of `root`, which references point into. A schema that says nothing of types
// allows either; so does one that is not understood.
ValueType type_of(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& root);

// Of a call's argument; one that no schema names is a string.
ValueType type_of_argument(const std::vector<Tool>& tools, std::string_view tool,
                           std::string_view argument);

// An argument's text as JSON. What is no JSON where some should be (Python's True and None apart)
// becomes a string.
std::string json_of_value(std::string_view text, ValueType type);

// The part of `root` that "#/.." points at; null when there is none.
const nlohmann::ordered_json* find_reference(const nlohmann::ordered_json& root,
                                             const nlohmann::ordered_json& reference);

}  // namespace octavo
