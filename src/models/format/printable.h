// printable.h - text from an untrusted file, made fit for an error message.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// What is not printable ASCII becomes \xNN, and long text is cut.
std::string printable(std::string_view text);

// The same in double quotes.
std::string in_quotes(std::string_view text);

}  // namespace octavo
