// vision_options.h - how an engine encodes images. No MLX.
#pragma once

#include <cstdint>
#include <string>

namespace octavo {

struct VisionOptions {
  int max_image_tokens = 4096;  // --image-max-tokens: of one image
  uint64_t kept_bytes =
      256ull << 20;  // --mm-processor-cache-gb: encoded images kept for later requests
  std::string processor_kwargs = {};  // --mm-processor-kwargs: a JSON object, or empty
  bool enabled = true;  // false with --limit-mm-per-prompt '{"image": 0}': no tower is loaded
};

}  // namespace octavo
