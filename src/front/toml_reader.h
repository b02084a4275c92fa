// toml_reader.h - reads the part of TOML that presets use: tables of one level, with texts, numbers,
// true and false, and lists of these. No MLX.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::front {

struct TomlEntry {
  std::string table = {};  // empty: before the first table
  std::string key = {};
  std::vector<std::string> values = {};  // one, unless it is a list
  bool is_list = false;
  int line = 0;
};

// Every key in order, and every table as an entry without a key. Throws SetupError that starts with
// `where` and the line.
std::vector<TomlEntry> read_toml(std::string_view text, const std::string& where);

}  // namespace octavo::front
