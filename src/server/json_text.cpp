#include "server/json_text.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/utf8.h"

namespace octavo::server {

Json parse_object(std::string_view body) {
  const auto bounded = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kJsonDepth)
      throw RequestError(400, "", fmt::format("the body nests deeper than {}", kJsonDepth));
    return true;
  };
  Json json;
  try {
    json = Json::parse(body, bounded);
  } catch (const Json::exception& error) {
    throw RequestError(400, "", fmt::format("the body is no valid JSON: {}", error.what()));
  }
  if (!json.is_object()) throw RequestError(400, "", "the body must be a JSON object");
  return json;
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string replaced;
  if (!is_valid_utf8(text)) {
    replaced = replace_invalid_utf8(text);
    text = replaced;
  }
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octavo::server
