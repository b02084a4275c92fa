// call_id.h - names for tool calls.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// The same for the same request, choice and call: "call_" and 24 letters and digits, or `length`
// of those alone where a template wants so many.
std::string call_id(std::string_view request, int choice, int call, int length = 0);

}  // namespace octavo
