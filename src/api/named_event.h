// named_event.h - named server-sent events, as the Responses and Messages APIs use them.
#pragma once

#include <string>
#include <string_view>

namespace octavo::api {

// "event: NAME\ndata: DATA\n\n"
inline void append_named_event(std::string& out, std::string_view name, std::string_view data) {
  out += "event: ";
  out += name;
  out += "\ndata: ";
  out += data;
  out += "\n\n";
}

}  // namespace octavo::api
