// config_keys.h - keys of config.json that Octavo does not read but that may change answers. No MLX.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/decoder_plan.h"

namespace octavo {

// Keys that neither Octavo nor transformers knows.
enum class UnknownKeys : uint8_t {
  kWarn,
  kRefuse,  // --strict-config
};

// Call after planning: looks at every key of config.json that the plan did not read. Throws
// SetupError if transformers knows the key for this family and its value is not transformers'
// default, because the model would compute something else. Returns the unknown keys.
std::vector<std::string> check_config_keys(const Config& config);

// plan_model for a config.json, with that check and with transformers' defaults for absent keys that
// plan_model does not require. Logs unknown keys, or throws SetupError.
DecoderPlan plan_config_file(const Config& config, UnknownKeys unknown);

}  // namespace octavo
