// call_text.h - formats calls as a model of a given dialect writes them.
#pragma once

#include <span>
#include <string>

#include "text/dialects/dialect.h"

namespace octavo {

struct ToolCall {
  std::string name;
  nlohmann::ordered_json arguments;  // an object
};

// A key and a value in the form kBareKeys.
std::string bare_key(const std::string& key, std::string_view quote);
std::string bare_text(const nlohmann::ordered_json& value, std::string_view quote);

std::string call_text(const ToolDialect& dialect, std::span<const ToolCall> calls);

}  // namespace octavo
