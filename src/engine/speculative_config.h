// speculative_config.h - speculative decoding: --speculative-config, with vLLM's names. No MLX.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

enum class SpeculativeMethod : uint8_t {
  kNone,
  kNgram,       // prompt lookup
  kDraftModel,  // a second, smaller model
  kMtp,         // the model's own multi-token prediction layer
};

struct SpeculativeConfig {
  SpeculativeMethod method = SpeculativeMethod::kNgram;
  int num_speculative_tokens = 7;  // most draft tokens per sequence and step
  int prompt_lookup_max = 4;       // longest n-gram that is looked up
  int prompt_lookup_min = 3;
  std::string model = {};  // the draft model's path
  bool asked = false;      // true if requested explicitly; see plan_speculation

  // For the start-up summary: "prompt lookup of 3 to 4 tokens, up to 7 ahead".
  std::string text() const;
};

// Throws SetupError that names the key and the allowed values.
SpeculativeConfig parse_speculative_config(std::string_view json);

}  // namespace octavo
