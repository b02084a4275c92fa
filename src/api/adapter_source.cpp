#include "api/adapter_source.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace octavo::api {
namespace {

[[noreturn]] void refuse_module(const std::string& text, std::string_view why) {
  throw SetupError(fmt::format(
      R"(--lora-modules {}: {}; write name=path or '{{"name": "NAME", "path": "PATH"}}')", text,
      why));
}

AdapterSource parse_json_module(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) refuse_module(text, "is not a JSON object");
  AdapterSource source;
  for (const auto& [key, value] : json.items()) {
    if (key == "base_model_name" && value.is_null()) continue;
    if (!value.is_string()) refuse_module(text, "its values must be texts");
    if (key == "name") {
      source.name = value.get<std::string>();
    } else if (key == "path") {
      source.path = value.get<std::string>();
    } else if (key == "base_model_name") {
      source.base_model_name = value.get<std::string>();
    } else {
      refuse_module(text, "has a key that is not known");
    }
  }
  return source;
}

}  // namespace

AdapterSource parse_lora_module(const std::string& text) {
  AdapterSource source;
  if (text.starts_with('{')) {
    source = parse_json_module(text);
  } else {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) refuse_module(text, "has no =");
    source = {.name = text.substr(0, equals), .path = text.substr(equals + 1)};
  }
  if (source.name.empty() || source.path.empty())
    refuse_module(text, "the name or the path is missing");
  return source;
}

}  // namespace octavo::api
