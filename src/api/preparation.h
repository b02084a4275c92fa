// preparation.h - how the preparation of a request (JSON, template, tokenizing, grammar) is stopped.
#pragma once

#include <stop_token>

#include "base/error.h"

namespace octavo::api {

// Long work looks at `stop` at least every 100 ms and ends early, with any exception, once a stop is
// requested: the client has left, the time limit has passed, or the server shuts down.
struct Preparation {
  std::stop_token stop = {};  // by default, never stopped

  // Between two parts of the work. The caller that requested the stop knows the reason.
  void check() const {
    if (stop.stop_requested()) throw RequestError(503, "", "the request was stopped");
  }
};

}  // namespace octavo::api
