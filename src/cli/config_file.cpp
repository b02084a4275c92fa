#include "cli/config_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

#include "base/error.h"

namespace octavo {
namespace {

// Removes "--config FILE" or "--config=FILE" and returns FILE; empty if it is absent.
std::string take_config_path(std::vector<std::string>& arguments) {
  const std::string flag = "--config";
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (at->starts_with(flag + "=")) {
      std::string path = at->substr(flag.size() + 1);
      arguments.erase(at);
      return path;
    }
    if (*at == flag) {
      if (at + 1 == arguments.end()) throw SetupError("--config: the file name is missing");
      std::string path = *(at + 1);
      arguments.erase(at, at + 2);
      return path;
    }
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// What to write instead of a line that is not NAME = VALUE.
std::string corrected(std::string_view line) {
  while (line.starts_with('-')) line.remove_prefix(1);
  const size_t end = std::min(line.find_first_of(":= \t"), line.size());
  std::string_view value = line.substr(end);
  while (!value.empty() && std::string_view(":= \t").find(value.front()) != value.npos)
    value.remove_prefix(1);
  return fmt::format("{} = {}", line.substr(0, end), value.empty() ? "true" : value);
}

bool is_assignment(std::string_view line) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos || trimmed(line.substr(equals + 1)).empty()) return false;
  const std::string_view name = trimmed(line.substr(0, equals));
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

// The parser accepts almost any line, so mistakes are found here. Throws SetupError.
void check_lines(const std::string& path, std::istream& file) {
  bool in_list = false;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    const std::string_view line = trimmed(text);
    if (in_list) {
      in_list = line.find(']') == std::string_view::npos;
      continue;
    }
    if (line.empty() || line.starts_with('#')) continue;
    const auto fail = [&](const std::string& problem) {
      throw SetupError(fmt::format("--config {}, line {}: {}", path, number, problem));
    };
    if (line.starts_with('['))
      fail("sections are not supported; write one flag per line, for example port = 9000");
    if (!is_assignment(line))
      fail(fmt::format("\"{}\" is not NAME = VALUE; write {}", line, corrected(line)));
    const std::string_view value = trimmed(line.substr(line.find('=') + 1));
    if (value.front() == '"' && value.find('"', 1) == std::string_view::npos)
      fail(fmt::format("the closing quote is missing; write {}\"", line));
    in_list = value.front() == '[' && value.find(']') == std::string_view::npos;
  }
  if (in_list) throw SetupError(fmt::format("--config {}: the closing ] is missing", path));
}

bool is_given(const std::vector<std::string>& arguments, const std::string& flag) {
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    return argument == flag || argument.starts_with(flag + "=");
  });
}

}  // namespace

std::vector<std::string> with_config_file(std::vector<std::string> arguments) {
  const std::string path = take_config_path(arguments);
  if (path.empty()) return arguments;
  std::ifstream file(path);
  if (!file) throw SetupError("--config: cannot read " + path);
  check_lines(path, file);
  file.clear();
  file.seekg(0);
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(file);
  } catch (const CLI::Error& error) {
    throw SetupError("--config " + path + ": " + error.what());
  }
  const std::vector<std::string> given = arguments;
  for (const CLI::ConfigItem& item : items) {
    if (!item.parents.empty())
      throw SetupError("--config " + path +
                       ": sections are not supported; write one flag per line");
    const std::string flag = "--" + item.name;
    if (is_given(given, flag)) continue;
    for (const std::string& value : item.inputs) arguments.push_back(flag + "=" + value);
  }
  return arguments;
}

}  // namespace octavo
