// answer_text.h - the text of one choice, made from the engine's updates as they come. Any thread,
// one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/update.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace octavo {

struct AnswerTextOptions {
  std::vector<std::string> stop = {};
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
};

class AnswerText {
 public:
  struct Delta {
    std::string text = {};  // certain: no stop string begins in it
    std::optional<FinishReason> finish = {};
    std::string stop_string = {};  // that ended the answer, if one did: the engine is to be told
    size_t tokens = 0;             // of the update that count; those behind a stop string do not
  };

  AnswerText(std::shared_ptr<const Tokenizer> tokenizer, AnswerTextOptions options);

  // After the delta with `finish` the rest is ignored.
  Delta take(const Update& update);

 private:
  // True when the text ends here.
  bool feed(const std::string& text, Delta& delta);

  AnswerTextOptions options_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  bool done_ = false;
};

}  // namespace octavo
