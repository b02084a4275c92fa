// parse_error.h - turns errors of the command-line parser into one plain sentence.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octavo {

// `arguments` are those that were parsed, in the order of the command line.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error,
                                const std::vector<std::string>& arguments);

}  // namespace octavo
