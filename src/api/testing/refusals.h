// refusals.h - how a request is refused, for tests.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace octavo::api {

// Status and field of the RequestError that `work` throws ("400 prompt"), or "accepted".
template <typename Work>
std::string refused_field(const Work& work) {
  try {
    work();
  } catch (const RequestError& error) {
    return fmt::format("{} {}", error.status(), error.param());
  }
  return "accepted";
}

// Status and message, or "accepted".
template <typename Work>
std::string refusal_of(const Work& work) {
  try {
    work();
  } catch (const RequestError& error) {
    return fmt::format("{} {}", error.status(), error.what());
  }
  return "accepted";
}

}  // namespace octavo::api
