// model_modalities.h - how lists of models say that a model takes images. No MLX.
#pragma once

#include "api/fields/json_text.h"

namespace octavo::api {

// llama.cpp's and OpenRouter's form.
inline Json image_architecture() {
  return {{"input_modalities", Json::array({"text", "image"})},
          {"output_modalities", Json::array({"text"})}};
}

}  // namespace octavo::api
