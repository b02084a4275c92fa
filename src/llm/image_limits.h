// image_limits.h - checks the settings of images, named after the flags of `octavo serve`.
#pragma once

#include <string>

namespace octavo {

inline constexpr double kMaxImageCacheGib = 1024;

// The images of a request that --limit-mm-per-prompt allows, in vLLM's form: {"image": N} or
// {"image": {"count": N}}. Throws SetupError.
int parse_image_limit(const std::string& json);

// The value of --mm-processor-kwargs: empty for an object without keys. Throws SetupError unless it
// is a JSON object or empty.
std::string checked_processor_kwargs(const std::string& json);

}  // namespace octavo
