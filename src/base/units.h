// units.h - formats and parses byte counts and other quantities.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

// "1.21 GiB", "640 KiB", "17 B": binary units, three digits.
std::string format_bytes(uint64_t bytes);

// "134.5M", "7.24B", "820": decimal, three to four digits.
std::string format_count(uint64_t count);

// Parses "4GiB", "512MB", "1.5 GiB" or "1048576". Throws SetupError with the name of `flag` if the
// text is malformed.
uint64_t parse_bytes(std::string_view text, std::string_view flag);

}  // namespace octavo
