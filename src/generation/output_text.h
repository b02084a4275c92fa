// output_text.h - the text of one choice, made from the engine's updates as they come. Any thread,
// one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/update.h"
#include "text/answer_part.h"
#include "text/detokenizer.h"
#include "text/dialects/answer_parser.h"
#include "text/stop_strings.h"

namespace octavo {

// An answer in a conversation.
struct ChatAnswer {
  AnswerParserOptions parser = {};
  std::vector<TokenId> markers = {};  // special tokens that the parser is to see
};

struct OutputTextOptions {
  std::vector<std::string> stop = {};
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  std::shared_ptr<const ChatAnswer> chat = nullptr;  // none: text is all there is
};

class OutputText {
 public:
  struct Delta {
    // Certain: no stop string begins in it. Of a chat: all that the model wrote.
    std::string text = {};
    std::vector<AnswerPart> parts = {};  // of a chat; stop strings are looked for in the content
    std::optional<FinishReason> finish = {};
    std::string stop_string = {};  // that ended the answer, if one did
    bool ended_early = false;      // by its text: the engine is to be told
    size_t tokens = 0;             // of the update that count; those behind a stop string do not
    size_t reasoning_tokens = 0;   // of these, the markers around it included
  };

  OutputText(std::shared_ptr<const Tokenizer> tokenizer, OutputTextOptions options);

  // After the delta with `finish` the rest is ignored.
  Delta take(const Update& update);

 private:
  // All true when the text ends here.
  bool feed(const std::string& text, Delta& delta);
  bool feed_parts(std::vector<AnswerPart> parts, Delta& delta);
  bool end_here(Delta& delta);
  void finish_text(Delta& delta);
  bool is_reasoning() const { return parser_ && parser_->reasoning(); }

  OutputTextOptions options_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  std::optional<AnswerParser> parser_;
  bool done_ = false;
};

}  // namespace octavo
