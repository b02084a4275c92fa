// option_group.h - adds command-line options under one heading of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace octavo {

struct OptionGroup {
  CLI::App& command;
  std::string heading;

  // --help shows the option's default value.
  template <typename Value>
  CLI::Option* operator()(const char* name, Value& value, const std::string& about) const {
    return without_default(name, value, about)->capture_default_str();
  }

  template <typename Value>
  CLI::Option* without_default(const char* name, Value& value, const std::string& about) const {
    return command.add_option(name, value, about)->group(heading);
  }
};

}  // namespace octavo
