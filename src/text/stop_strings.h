// stop_strings.h - truncates a stream of text at the first stop string. One per stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct StopStringsOptions {
  std::vector<std::string> stops = {};  // empty strings are ignored
  bool include_stop_str = false;        // keep the stop string at the end of the text
};

class StopStrings {
 public:
  struct Step {
    std::string text = {};  // safe to send: no stop string begins in it
    bool matched = false;   // the text ends here; further calls return nothing
    std::string stop = {};  // the stop string, if matched
  };

  explicit StopStrings(StopStringsOptions options);

  // Holds back only a suffix that could begin a stop string. The stop string that completes first
  // wins, then the one that begins first, so the result does not depend on how the text was split
  // into deltas.
  Step push(std::string_view delta);
  // Returns the text held back before a non-text part, which no stop string spans.
  std::string release();
  // Ends the stream and returns the text held back.
  std::string finish();

 private:
  StopStringsOptions options_;
  std::string held_;
  bool done_ = false;
};

}  // namespace octavo
