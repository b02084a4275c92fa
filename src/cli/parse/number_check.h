// number_check.h - checks of numbers on the command line, with messages in plain numbers. Use them
// with Option::transform().
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace octavo {

// Reads "4096", "100k" (1000 each), "4K" (1024 each) and so on with m, M, g and G, as vLLM does;
// decimals only before a small letter: "25.6k". Nullopt if the text is not a whole number.
std::optional<int64_t> parse_whole_number(std::string_view text);

CLI::Validator whole_number(int64_t low, int64_t high = std::numeric_limits<int32_t>::max());
// `high` is allowed; `low` only if `including`.
CLI::Validator real_number(double low, bool including,
                           double high = std::numeric_limits<double>::infinity());
// 0 or a TCP port.
CLI::Validator port_number();
// A context length: at least 1, or "auto" and -1 for 0, the largest that fits.
CLI::Validator context_length();

}  // namespace octavo
