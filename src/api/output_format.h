// output_format.h - an API's way to write answers down; the events are the same for all.
#pragma once

#include <string>
#include <vector>

#include "api/output_events.h"
#include "base/error.h"

namespace octavo::api {

// One per call; one thread at a time.
class WholeFormat {
 public:
  virtual ~WholeFormat() = default;

  // The body of a whole answer: `answers` holds every choice, all its events in one.
  virtual std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) = 0;
};

class OutputFormat : public WholeFormat {
 public:
  // Server-sent events, appended to `out`: what an event has to say, if anything, and the stream's
  // end.
  virtual void append_event(std::string& out, const OutputEvent& event, const Usage& usage) = 0;
  virtual void append_end(std::string& out, const Usage& usage) = 0;
  // In place of the end, when the stream cannot go on.
  virtual void append_error(std::string& out, const RequestError& error) = 0;
};

}  // namespace octavo::api
