#include "models/adapters/metal_support.h"

#include <fmt/format.h>

#include "base/error.h"
#include "models/format/printable.h"

namespace octavo {

void check_metal_serves(const LoraWeights& weights, const AdapterTargets& targets) {
  for (const LoraModule& lora : weights.modules) {
    if (targets.modules.at(lora.name).is_table)
      throw SetupError(fmt::format(
          "module {}: LoRA on embeddings is not supported on Metal; add --device cpu, or merge the "
          "adapter with --merge-adapter",
          in_quotes(lora.name)));
  }
}

}  // namespace octavo
