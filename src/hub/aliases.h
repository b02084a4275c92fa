// aliases.h - short names for models that many people start with.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct Alias {
  std::string_view name;
  std::string_view model;  // a name as parse_model_name takes it
};

std::span<const Alias> all_aliases();

// The model's name; empty: it is no alias.
std::string_view resolve_alias(std::string_view name);

}  // namespace octavo
