// body_fields.h - the fields of a request body as a table, which reads, refuses and documents them
// (OpenAPI) in one place.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/fields/json_values.h"

namespace octavo::api {

inline constexpr size_t kMaxNameBytes = 1024;  // model names, request ids, salts

enum class FieldUse : uint8_t {
  kUsed,
  kHint,     // cannot change the output: accepted, and listed in x-octavo-ignored
  kRefused,  // would change the output: only values without effect are accepted
};

template <typename Target>
struct Field {
  std::string name;
  FieldUse use;
  Json schema;  // for OpenAPI; null is also allowed, unless the field is required
  std::string about;
  // Not called for null. A refused field throws unless the value has no effect.
  std::function<void(const Json& value, Target& target)> read = nullptr;
  bool required = false;
};

template <typename Target>
using FieldTable = std::vector<Field<Target>>;

// Adds the fields of another table, which read into the part of the target that `part_of` returns.
// `fields` must outlive the table.
template <typename Target, typename Part, typename PartOf>
void add_fields(FieldTable<Target>& table, const FieldTable<Part>& fields, PartOf part_of) {
  for (const Field<Part>& field : fields) {
    Field<Target> added{.name = field.name,
                        .use = field.use,
                        .schema = field.schema,
                        .about = field.about,
                        .required = field.required};
    if (field.read)
      added.read = [&field, part_of](const Json& value, Target& target) {
        field.read(value, part_of(target));
      };
    table.push_back(std::move(added));
  }
}

// Ignored hints, for the header x-octavo-ignored.
using IgnoredFields = std::vector<std::string>;

// Reads every field of `body` into `target`. Throws RequestError(400) for a missing required field
// and for a field that is not in the table.
template <typename Target>
IgnoredFields read_fields(const Json& body, const FieldTable<Target>& table, Target& target) {
  IgnoredFields ignored;
  for (const Field<Target>& field : table) {
    if (field.required && (!body.contains(field.name) || body.at(field.name).is_null()))
      refuse(field.name, "is missing");
  }
  for (const auto& [name, value] : body.items()) {
    const auto field = std::ranges::find(table, name, &Field<Target>::name);
    if (field != table.end() && field->use == FieldUse::kHint) {
      ignored.push_back(name);
    } else if (value.is_null()) {
      // No effect. Unknown names are not listed: clients could inject header text.
    } else if (field == table.end()) {
      refuse(name, "is not a known field; it is rejected because it could change the output");
    } else {
      field->read(value, target);
    }
  }
  return ignored;
}

// OpenAPI 3.1 schema of the table; x-octavo-refused maps refused fields to their reasons.
template <typename Target>
Json schema_of(const FieldTable<Target>& table) {
  Json properties = Json::object();
  Json required = Json::array();
  Json refused = Json::object();
  for (const Field<Target>& field : table) {
    if (field.use == FieldUse::kRefused) {
      refused[field.name] = field.about;
      continue;
    }
    Json schema = field.schema;
    if (field.required) {
      required.push_back(field.name);
    } else {
      schema = {{"anyOf", {schema, {{"type", "null"}}}}};
    }
    schema["description"] =
        field.use == FieldUse::kHint ? "Accepted and ignored. " + field.about : field.about;
    properties[field.name] = std::move(schema);
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  // Unknown fields are refused, since they may change the output.
  schema["additionalProperties"] = {{"type", "null"}};
  if (!refused.empty()) schema["x-octavo-refused"] = std::move(refused);
  return schema;
}

}  // namespace octavo::api
