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

// A stream of server-sent events, unless the functions after the first three are overridden.
class OutputFormat : public WholeFormat {
 public:
  // Append what is sent to `out`: for one output event (possibly nothing), and for the end of the
  // stream.
  virtual void append_event(std::string& out, const OutputEvent& event, const Usage& usage) = 0;
  virtual void append_end(std::string& out, const Usage& usage) = 0;
  // Instead of the end, if generation fails.
  virtual void append_error(std::string& out, const RequestError& error) = 0;

  virtual const char* content_type() const { return "text/event-stream; charset=utf-8"; }
  // Sent after a long silence; clients ignore it.
  virtual void append_keep_alive(std::string& out) const { out += ": keep-alive\n\n"; }
};

}  // namespace octavo::api
