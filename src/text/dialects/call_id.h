// call_id.h - ids of tool calls.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// Deterministic for a given request, choice and call: "call_" and 24 letters and digits, or, if
// `length` is not 0, only `length` letters and digits (some templates require this).
std::string call_id(std::string_view request, int choice, int call, int length = 0);

}  // namespace octavo
