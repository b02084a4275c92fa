// current_error.h - the text of the exception that is being handled. No MLX.
#pragma once

#include <exception>
#include <string>

namespace octavo {

// Only in a catch block.
inline std::string current_error() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "the device failed";  // Metal throws Objective-C exceptions
  }
}

}  // namespace octavo
