// translate_arguments.h - replaces other programs' words on the command line by octavo's.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace octavo {

// `arguments` are main()'s without the program name, `app` has all commands. Flags of other
// programs become octavo's, or are dropped if they request what octavo does anyway; `say` gets one
// line for each dropped flag and each replaced command. Throws UsageError that names what was typed
// if a command or flag is unknown or not supported.
std::vector<std::string> translate_arguments(const CLI::App& app,
                                             const std::vector<std::string>& arguments,
                                             const std::function<void(const std::string&)>& say);

// The command that `arguments` select, or `app` itself.
const CLI::App& selected_command(const CLI::App& app, const std::vector<std::string>& arguments);

// "octavo bench serve"
std::string full_name(const CLI::App& command);

}  // namespace octavo
