#include "cli/pooling_flags.h"

namespace octavo {

void PoolingFlags::add_to(CLI::App& command) {
  const std::string group = "Embeddings";
  command
      .add_option("--runner", runner,
                  "generate text, pooling for embeddings, or auto: what the model's files say")
      ->check(CLI::IsMember({"auto", "generate", "pooling"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--pooler-config", pooler_config,
          R"(How rows become a vector, as in {"pooling_type": "MEAN"}: pooling_type (LAST, )"
          "MEAN), use_activation (whether vectors get length 1), dimensions (default: "
          "what the model's files say, or LAST and true)")
      ->type_name("JSON")
      ->group(group);
  command
      .add_option("--hf-overrides", hf_overrides,
                  "What the model's config does not say: is_matryoshka (requests may ask for "
                  "fewer dimensions), matryoshka_dimensions (for which)")
      ->type_name("JSON")
      ->group(group);
}

}  // namespace octavo
