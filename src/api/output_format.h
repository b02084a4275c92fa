// output_format.h - how an API serializes output; the events are the same for all APIs.
#pragma once

#include <string>
#include <vector>

#include "api/output_events.h"
#include "base/error.h"

namespace octavo::api {

// One per request; one thread at a time.
class WholeFormat {
 public:
  virtual ~WholeFormat() = default;

  // The body of a non-streamed response: `answers` has one merged event per choice.
  virtual std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) = 0;
};

class OutputFormat : public WholeFormat {
 public:
  // Append server-sent events to `out`: for one output event (possibly none), and for the end of
  // the stream.
  virtual void append_event(std::string& out, const OutputEvent& event, const Usage& usage) = 0;
  virtual void append_end(std::string& out, const Usage& usage) = 0;
  // Instead of the end, if generation fails.
  virtual void append_error(std::string& out, const RequestError& error) = 0;
};

}  // namespace octavo::api
