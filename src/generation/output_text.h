// output_text.h - turns the engine's updates of one choice into text. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/update.h"
#include "text/detokenizer.h"
#include "text/dialects/output_parser.h"
#include "text/output_part.h"
#include "text/stop_strings.h"

namespace octavo {

// How the output of a chat is parsed.
struct ChatAnswer {
  OutputParserOptions parser = {};
  std::vector<TokenId> markers = {};  // special tokens that the parser must see
};

struct OutputTextOptions {
  std::vector<std::string> stop = {};
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  std::shared_ptr<const ChatAnswer> chat = nullptr;  // null: plain text
};

class OutputText {
 public:
  struct Delta {
    // Final text: no stop string begins in it. In a chat: everything the model wrote.
    std::string text = {};
    std::vector<OutputPart> parts = {};  // in a chat; stop strings are searched in the content
    std::optional<FinishReason> finish = {};
    std::string stop_string = {};  // that ended the output, if any
    bool ended_early = false;      // ended by its text: the caller must abort the engine request
    size_t tokens = 0;             // tokens of the update that count; not those after a stop string
    size_t reasoning_tokens = 0;   // of these, reasoning and its markers
  };

  OutputText(std::shared_ptr<const Tokenizer> tokenizer, OutputTextOptions options);

  // Updates after the delta with `finish` are ignored.
  Delta take(const Update& update);

 private:
  // All return true if the text ends here.
  bool feed(const std::string& text, Delta& delta);
  bool feed_parts(std::vector<OutputPart> parts, Delta& delta);
  bool end_here(Delta& delta);
  void finish_text(Delta& delta);
  bool is_reasoning() const { return parser_ && parser_->reasoning(); }

  OutputTextOptions options_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  std::optional<OutputParser> parser_;
  bool done_ = false;
};

}  // namespace octavo
