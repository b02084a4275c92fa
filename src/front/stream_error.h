// stream_error.h - the event that ends a stream which cannot go on, in the API's own format. No MLX.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::front {

// What the streams of /v1/responses have numbered so far.
class SequenceNumbers {
 public:
  void saw(std::string_view events);
  int64_t next() const { return next_; }

 private:
  int64_t next_ = 0;
};

std::string stream_error(std::string_view path, const RequestError& error,
                         const SequenceNumbers& numbers);

}  // namespace octavo::front
