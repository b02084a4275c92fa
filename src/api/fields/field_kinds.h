// field_kinds.h - constructors for table fields and their schemas.
#pragma once

#include <initializer_list>
#include <limits>
#include <utility>

#include "api/fields/body_fields.h"

namespace octavo::api {

inline constexpr int kMaxInt = std::numeric_limits<int>::max();
inline constexpr size_t kMaxTextBytes = 8u << 20;  // of one text in a request
inline constexpr size_t kMaxTools = 512;

inline Json boolean_schema() { return {{"type", "boolean"}}; }
inline Json string_schema(size_t max_length) {
  return {{"type", "string"}, {"maxLength", max_length}};
}
inline Json filled_string_schema(size_t max_length) {
  return {{"type", "string"}, {"minLength", 1}, {"maxLength", max_length}};
}
inline Json filled_strings_schema(size_t max_length, size_t max_items) {
  return {{"type", "array"}, {"items", filled_string_schema(max_length)}, {"maxItems", max_items}};
}
inline Json integer_schema(int64_t low, int64_t high) {
  return {{"type", "integer"}, {"minimum", low}, {"maximum", high}};
}
inline Json number_schema(double low, double high) {
  return {{"type", "number"}, {"minimum", low}, {"maximum", high}};
}
inline Json one_of_schema(std::initializer_list<const char*> values) {
  Json schema = {{"type", "string"}, {"enum", Json::array()}};
  for (const char* value : values) schema["enum"].push_back(value);
  return schema;
}
inline Json tokens_schema() { return {{"type", "array"}, {"items", integer_schema(0, kMaxInt)}}; }
inline Json filled_tokens_schema() {
  Json schema = tokens_schema();
  schema["minItems"] = 1;
  return schema;
}

template <typename Target>
Field<Target> used(std::string name, Json schema, std::string about,
                   std::function<void(const Json&, Target&)> read) {
  return {.name = std::move(name),
          .use = FieldUse::kUsed,
          .schema = std::move(schema),
          .about = std::move(about),
          .read = std::move(read)};
}

// Accepted, and listed in x-octavo-ignored.
template <typename Target>
FieldTable<Target> hints(std::initializer_list<const char*> names) {
  FieldTable<Target> fields;
  for (const char* name : names)
    fields.push_back({.name = name,
                      .use = FieldUse::kHint,
                      .schema = Json::object(),
                      .about = "Does not affect the output"});
  return fields;
}

inline bool asks_nothing(const Json& value) { return value.is_null() || value.empty(); }
inline bool asks_false(const Json& value) { return value == false; }

// Refused with `reason`, unless the value has no effect: null, or `harmless` returns true.
template <typename Target>
Field<Target> refused(std::string name, std::string reason,
                      std::function<bool(const Json&)> harmless = asks_nothing) {
  auto read = [name, reason, harmless = std::move(harmless)](const Json& value, Target&) {
    if (!harmless(value)) refuse(name, reason);
  };
  return {.name = std::move(name),
          .use = FieldUse::kRefused,
          .schema = Json::object(),
          .about = std::move(reason),
          .read = std::move(read)};
}

}  // namespace octavo::api
