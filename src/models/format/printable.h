// printable.h - escapes text from an untrusted file for an error message.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// Escapes anything but printable ASCII as \xNN and truncates long text.
std::string printable(std::string_view text);

// The same in double quotes.
std::string in_quotes(std::string_view text);

}  // namespace octavo
