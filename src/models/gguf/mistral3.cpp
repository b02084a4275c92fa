// Ministral 3 and Devstral 2: Mistral with yarn and queries scaled by position. The period of that
// scale is the original context.
#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

void scale_queries(GgufReader& file, Json& config) {
  Json rope = config.value("rope_scaling", Json::object());
  config.erase("rope_scaling");
  rope["rope_theta"] = config["rope_theta"];
  const Json beta = file.take_one("attention.temperature_scale");
  if (!beta.is_null() && beta != 0) {
    rope["llama_4_scaling_beta"] = beta;
    if (!rope.contains("original_max_position_embeddings"))
      rope["original_max_position_embeddings"] = config["max_position_embeddings"];
  }
  config["rope_parameters"] = rope;
}

}  // namespace

GgufArchitecture gguf_mistral3() {
  return {.name = "mistral3",
          .model_type = "ministral3",
          .permutes_rope = true,
          .adapt = scale_queries};
}

}  // namespace octavo
