// error.h - the three kinds of error.
//
//   a bug in Octavo             OCTAVO_CHECK  aborts with the failed condition
//   an invalid request          RequestError  the HTTP status, the parameter and what is allowed
//   invalid files or settings,  SetupError    what is wrong and what the user can change
//   or an unsuitable machine
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace octavo {

// A request that cannot be served as asked. `status` is the HTTP status it maps to.
class RequestError : public std::runtime_error {
 public:
  RequestError(int status, std::string param, const std::string& message)
      : std::runtime_error(param.empty() ? message : param + ": " + message),
        status_(status),
        param_(std::move(param)) {}
  int status() const { return status_; }
  const std::string& param() const { return param_; }

 private:
  int status_;
  std::string param_;
};

// A model file, a flag or this machine rules out the requested setting; the message says what to
// change.
class SetupError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Prints where and what, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace octavo

#define OCTAVO_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::octavo::check_failed(#condition, __FILE__, __LINE__))
