// stop_strings.h - ends a stream of text at the first stop string. One per stream.
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
    std::string text = {};  // may be sent: no stop string begins in it
    bool matched = false;   // the text ends here; further calls return nothing
    std::string stop = {};  // which one, when matched
  };

  explicit StopStrings(StopStringsOptions options);

  // Holds back only an end that could be the beginning of a stop string. The stop string that is
  // complete first wins, then the one that begins first: how the text was cut into deltas does not
  // matter.
  Step push(std::string_view delta);
  // Something that is no text stands between: what was held back. No stop string goes across.
  std::string release();
  // The stream ended: what was held back.
  std::string finish();

 private:
  StopStringsOptions options_;
  std::string held_;
  bool done_ = false;
};

}  // namespace octavo
