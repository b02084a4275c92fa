// output_builder.h - collects the updates of one choice into a TextAnswer. One thread at a time.
#pragma once

#include <chrono>

#include "llm/llm.h"

namespace octavo {

class OutputBuilder {
 public:
  OutputBuilder(std::shared_ptr<const Tokenizer> tokenizer, const TextRequest& request,
                std::vector<TokenId> prompt_tokens);

  // Returns the new text, like OutputText::take().
  OutputText::Delta take(Update update);
  bool done() const { return done_; }
  TextAnswer& answer() { return answer_; }

 private:
  using Clock = std::chrono::steady_clock;

  OutputText text_;
  TextAnswer answer_;
  bool done_ = false;
  Clock::time_point asked_ = Clock::now();
  Clock::time_point first_token_;
};

}  // namespace octavo
