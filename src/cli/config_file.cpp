#include "cli/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

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
