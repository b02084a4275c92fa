// request_fields.h - the fields of every kind of request that the engine runs.
#pragma once

#include "api/fields/field_kinds.h"

namespace octavo::server {

// Call has `engine`, a Request, and `request_id`.
template <typename Call>
FieldTable<Call> request_fields() {
  return {
      used<Call>("priority", integer_schema(-kMaxInt, kMaxInt),
                 "Lower goes first, with --scheduling-policy priority",
                 [](const Json& v, Call& c) {
                   c.engine.priority = to_int(v, "priority", -kMaxInt, kMaxInt);
                 }),
      used<Call>(
          "request_id", string_schema(kMaxNameBytes), "The id of the answer",
          [](const Json& v, Call& c) { c.request_id = to_string(v, "request_id", kMaxNameBytes); }),
      used<Call>("cache_salt", filled_string_schema(kMaxNameBytes),
                 "Prompts with different salts share no cached prefix",
                 [](const Json& v, Call& c) {
                   c.engine.cache_salt = to_string(v, "cache_salt", kMaxNameBytes);
                   if (c.engine.cache_salt.empty()) refuse("cache_salt", "is empty");
                 }),
  };
}

}  // namespace octavo::server
