#include "engine/plan_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace octavo {
namespace {

void refuse_if(bool given, const std::string& flag, const std::string& why) {
  if (given) throw SetupError(fmt::format("{}: {}; leave the flag out", flag, why));
}

void refuse_unsupported(const EngineOptions& options) {
  refuse_if(options.prefix_caching_given && options.enable_prefix_caching,
            "--enable-prefix-caching",
            "every token of an encoder sees the whole text, so that texts share no prefix");
  refuse_if(options.prefix_disk.has_value(), "--prefix-disk", "an encoder has no prefix cache");
  refuse_if(options.prefix_observer != nullptr, "--kv-events-config",
            "an encoder has no prefix cache");
  refuse_if(options.kv_format != KvFormat::kPlain, "--kv-cache-dtype",
            "an encoder keeps keys and values for one step only");
  refuse_if(options.adapters.has_value(), "--enable-lora", "encoders take no adapters");
  refuse_if(!options.merge_adapter.empty(), "--merge-adapter", "encoders take no adapters");
  refuse_if(options.cluster != nullptr,
            options.tensor_parallel ? "--tensor-parallel-size" : "--pipeline-parallel-size",
            "an encoder runs on one machine");
}

// Positions after the last row of the table would read other memory.
void check_positions(const EncoderPlan& encoder, const EngineOptions& options, int context) {
  const int most = encoder.position_rows - encoder.first_position;
  if (encoder.positions.empty() || context <= most) return;
  throw SetupError(
      fmt::format("{}: the model has embeddings of {} positions, which are its longest "
                  "context; use {} or less",
                  options.max_model_len ? "--max-model-len" : "--hf-overrides", most, most));
}

}  // namespace

EngineOptions options_for(const ModelDescription& model, const EngineOptions& options) {
  if (!model.plan.encoder) return options;
  if (!model.pooling) {
    throw SetupError(
        "the model is an encoder, which generates no tokens; start octavo serve without --runner "
        "generate");
  }
  refuse_unsupported(options);
  const int context =
      options.max_model_len.value_or(options.model_context.value_or(model.plan.max_context));
  check_positions(*model.plan.encoder, options, context);
  EngineOptions own = options;
  own.enable_prefix_caching = false;
  if (!options.batched_tokens_given)
    own.max_num_batched_tokens = std::max(options.max_num_batched_tokens, context);
  return own;
}

}  // namespace octavo
