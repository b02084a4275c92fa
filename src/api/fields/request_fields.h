// request_fields.h - fields that all requests to the engine share.
#pragma once

#include "api/fields/field_kinds.h"

namespace octavo::api {

// Target has `engine`, a Request, and `request_id`.
template <typename Target>
FieldTable<Target> request_fields() {
  return {
      used<Target>("priority", integer_schema(-kMaxInt, kMaxInt),
                   "Lower values are scheduled first, with --scheduling-policy priority",
                   [](const Json& v, Target& t) {
                     t.engine.priority = to_int(v, "priority", -kMaxInt, kMaxInt);
                   }),
      used<Target>("request_id", string_schema(kMaxNameBytes), "Id of the response",
                   [](const Json& v, Target& t) {
                     t.request_id = to_string(v, "request_id", kMaxNameBytes);
                   }),
      used<Target>("cache_salt", filled_string_schema(kMaxNameBytes),
                   "Prompts with different salts do not share cached prefixes",
                   [](const Json& v, Target& t) {
                     t.engine.cache_salt = to_string(v, "cache_salt", kMaxNameBytes);
                     if (t.engine.cache_salt.empty()) refuse("cache_salt", "is empty");
                   }),
  };
}

}  // namespace octavo::api
