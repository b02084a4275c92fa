// aliases.h - short names for popular models.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct Alias {
  std::string_view name;
  std::string_view model;  // in the syntax of parse_model_name()
};

std::span<const Alias> all_aliases();

// Returns the full name; empty if `name` is not an alias. A colon counts as a dash, as in qwen3:8b.
std::string_view resolve_alias(std::string_view name);

}  // namespace octavo
