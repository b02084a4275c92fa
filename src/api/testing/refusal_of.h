// refusal_of.h - how a call refuses a request, for tests.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace octavo::server {

// Status and parameter of the RequestError that `work` throws, or "taken".
template <typename Work>
std::string refusal_of(const Work& work) {
  try {
    work();
  } catch (const RequestError& error) {
    return fmt::format("{} {}", error.status(), error.param());
  }
  return "taken";
}

// The same with its message; the status must be 400.
template <typename Work>
std::string refusal_message_of(const Work& work) {
  try {
    work();
  } catch (const RequestError& error) {
    return error.status() == 400 ? error.what() : "not 400";
  }
  return "taken";
}

}  // namespace octavo::server
