// routing_fields.h - the fields of a JSON body that decide where its request goes. No MLX.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "front/keep_alive.h"

namespace octavo::front {

struct RoutingFields {
  std::string model = {};                    // empty: none
  std::optional<KeepAlive> keep_alive = {};  // nothing: the model's own
  // Where the value of `model` stands in the body, with its quotes. Empty: there is none.
  size_t model_begin = 0;
  size_t model_end = 0;
  // Where more members can be inserted, and whether they need a comma before them.
  size_t end = 0;
  bool has_members = false;
};

// Finds the fields in one pass, without building the value. Of equal keys the last counts. Inside
// other values only strings and brackets are checked: the child checks the rest. Throws
// RequestError(400).
RoutingFields routing_fields(std::string_view body);

// The body with another name of the model.
std::string with_model(std::string_view body, const RoutingFields& fields, std::string_view model);

}  // namespace octavo::front
