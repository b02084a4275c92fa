#include "text/dialects/argument_types.h"

#include <algorithm>

#include "text/dialects/call_sink.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr int kReferenceDepth = 16;

struct Seen {
  bool string = false;
  bool other = false;
};

void look(const ordered_json& schema, const ordered_json& root, int depth, Seen& seen) {
  const auto both = [&] { seen = {true, true}; };
  if (!schema.is_object() || depth > kReferenceDepth) return both();
  const auto note = [&](bool string) { (string ? seen.string : seen.other) = true; };
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) return note(*type == "string");
    if (!type->is_array()) return both();
    for (const ordered_json& one : *type) note(one == "string");
    return;
  }
  if (const auto fixed = schema.find("const"); fixed != schema.end())
    return note(fixed->is_string());
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    for (const ordered_json& value : *values) note(value.is_string());
    return;
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    const auto options = schema.find(key);
    if (options == schema.end() || !options->is_array()) continue;
    for (const ordered_json& option : *options) look(option, root, depth + 1, seen);
    return;
  }
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    const ordered_json* target = find_reference(root, *reference);
    return target == nullptr ? both() : look(*target, root, depth + 1, seen);
  }
  both();
}

}  // namespace

const ordered_json* find_reference(const ordered_json& root, const ordered_json& reference) {
  if (!reference.is_string()) return nullptr;
  const auto& text = reference.get_ref<const std::string&>();
  if (!text.starts_with('#')) return nullptr;
  try {
    const ordered_json::json_pointer pointer(text.substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const ordered_json::exception&) {  // not a JSON pointer
    return nullptr;
  }
}

ValueType type_of(const ordered_json& schema, const ordered_json& root) {
  Seen seen;
  look(schema, root, 0, seen);
  if (seen.string == seen.other) return ValueType::kEither;
  return seen.string ? ValueType::kString : ValueType::kOther;
}

ValueType type_of_argument(const std::vector<Tool>& tools, std::string_view tool,
                           std::string_view argument) {
  const auto found = std::ranges::find(tools, tool, &Tool::name);
  if (found == tools.end() || !found->parameters.is_object()) return ValueType::kString;
  const auto properties = found->parameters.find("properties");
  if (properties == found->parameters.end() || !properties->is_object()) return ValueType::kString;
  const auto property = properties->find(std::string(argument));
  if (property == properties->end()) return ValueType::kString;
  return type_of(*property, found->parameters);
}

std::string json_of_value(std::string_view text, ValueType type) {
  if (type == ValueType::kString) return json_quoted(text);
  const std::string_view bare = strip_space(text);
  if (nlohmann::json::accept(bare)) return std::string(bare);
  if (bare == "True") return "true";
  if (bare == "False") return "false";
  if (bare == "None") return "null";
  return json_quoted(text);
}

}  // namespace octavo
