#include "engine/cluster/cluster_setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo {

std::string ClusterSetup::to_json() const {
  return nlohmann::json{{"tensor", tensor},
                        {"cuts", cuts},
                        {"page_count", page_count},
                        {"max_model_len", max_model_len},
                        {"dtype", std::string(name_of(dtype))},
                        {"kv_format", static_cast<int>(kv_format)},
                        {"block_tokens", block_tokens},
                        {"max_num_seqs", max_num_seqs},
                        {"max_num_batched_tokens", max_num_batched_tokens},
                        {"predicts", predicts},
                        {"most_drafts", most_drafts},
                        {"runner", static_cast<int>(pooling.runner)},
                        {"pooler_config", pooling.pooler_config},
                        {"hf_overrides", pooling.hf_overrides},
                        {"model_digest", model_digest},
                        {"arithmetic", arithmetic},
                        {"merged", merged}}
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

ClusterSetup ClusterSetup::from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    ClusterSetup setup{.tensor = json.at("tensor"),
                       .cuts = json.at("cuts"),
                       .page_count = json.at("page_count"),
                       .max_model_len = json.at("max_model_len"),
                       .dtype = parse_dtype(json.at("dtype").get<std::string>(), "dtype"),
                       .kv_format = KvFormat{json.at("kv_format").get<uint8_t>()},
                       .block_tokens = json.at("block_tokens"),
                       .max_num_seqs = json.at("max_num_seqs"),
                       .max_num_batched_tokens = json.at("max_num_batched_tokens"),
                       .predicts = json.at("predicts"),
                       .most_drafts = json.at("most_drafts"),
                       .pooling = {.runner = RunnerKind{json.at("runner").get<uint8_t>()},
                                   .pooler_config = json.at("pooler_config"),
                                   .hf_overrides = json.at("hf_overrides")},
                       .model_digest = json.at("model_digest"),
                       .arithmetic = json.at("arithmetic"),
                       .merged = json.at("merged")};
    if (setup.page_count < 1 || setup.max_num_batched_tokens < 1)
      throw SetupError("rank 0 sent a setup without pages or rows");
    return setup;
  } catch (const nlohmann::json::exception& error) {
    throw SetupError(fmt::format("rank 0 sent a setup that is not valid: {}", error.what()));
  }
}

EngineOptions ClusterSetup::options(const EngineOptions& own) const {
  EngineOptions options{.device = own.device,
                        .dtype = dtype,
                        .unknown_config_keys = own.unknown_config_keys,
                        .kv_format = kv_format,
                        .block_tokens = block_tokens,
                        .wired_bytes = own.wired_bytes,
                        .max_num_seqs = max_num_seqs,
                        .max_num_batched_tokens = max_num_batched_tokens,
                        .merge_adapter = own.merge_adapter,
                        .pooling = pooling,
                        .touch_pages = own.touch_pages,
                        .fails = own.fails};
  // Rank 0 drafts, except with the model's own layer.
  options.speculation.asked = true;
  options.speculation.num_speculative_tokens = most_drafts;
  options.speculation.method = predicts          ? SpeculativeMethod::kMtp
                               : most_drafts > 0 ? SpeculativeMethod::kNgram
                                                 : SpeculativeMethod::kNone;
  return options;
}

StageRange ClusterSetup::stage(size_t rank, const DecoderPlan& plan) const {
  const int layers = static_cast<int>(plan.layers.size());
  if (tensor) return {0, layers};
  if (rank > cuts.size()) throw SetupError("rank 0 has no layers for this rank");
  const StageRange stage{rank == 0 ? 0 : cuts[rank - 1], rank == cuts.size() ? layers : cuts[rank]};
  if (stage.first < 0 || stage.first >= stage.last || stage.last > layers)
    throw SetupError(fmt::format("rank 0 gave this rank layers {} to {} of {}", stage.first,
                                 stage.last, layers));
  return stage;
}

StepLimits step_limits(const CachePlan& cache, const ClusterSetup& setup, int vocab) {
  StepLimits limits{.rows = setup.max_num_batched_tokens,
                    .vocab = vocab,
                    .page_count = setup.page_count,
                    .positions = setup.max_model_len + setup.max_num_batched_tokens,
                    .block_tables = static_cast<int>(cache.groups.size()) + (cache.state ? 1 : 0),
                    .predicts = setup.predicts};
  for (const CacheGroup& group : cache.groups)
    limits.groups.push_back({.block_tokens = group.block_tokens, .window = group.spec.window});
  return limits;
}

std::string hex_of(const Sha256Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace octavo
