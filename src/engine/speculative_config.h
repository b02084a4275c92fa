// speculative_config.h - how answers are guessed ahead: --speculative-config, with vLLM's names. No
// MLX.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

enum class SpeculativeMethod : uint8_t {
  kNone,
  kNgram,       // prompt lookup
  kDraftModel,  // a second, smaller model
};

struct SpeculativeConfig {
  SpeculativeMethod method = SpeculativeMethod::kNgram;
  int num_speculative_tokens = 7;  // drafts of a sequence in a step, at most
  int prompt_lookup_max = 4;       // tokens of the n-grams that are looked up
  int prompt_lookup_min = 3;
  std::string model = {};  // the draft model's path
  bool asked = false;      // false: where it cannot be had, do without

  // As people read it: "prompt lookup of 3 to 4 tokens, up to 7 ahead".
  std::string text() const;
};

// Throws SetupError naming the key and what would be right.
SpeculativeConfig parse_speculative_config(std::string_view json);

}  // namespace octavo
