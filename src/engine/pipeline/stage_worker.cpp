#include "engine/pipeline/stage_worker.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/cluster/worker_loop.h"
#include "engine/merge_adapter.h"
#include "engine/pipeline/stage_steps.h"
#include "engine/plan_engine.h"
#include "engine/step_memory.h"
#include "kernels/runtime/device.h"
#include "models/checkpoint_fit.h"

namespace octavo {
namespace {

void check_same_adapter(const std::optional<Sha256Digest>& merged, const ClusterSetup& setup) {
  if ((merged ? hex_of(*merged) : "") != setup.merged)
    throw SetupError("--merge-adapter: must be given on every rank, with the same files");
}

}  // namespace

StageWorker::StageWorker(RankModel rank_model, WorkerChannel& channel, Engine::Progress progress)
    : channel_(channel),
      rank_model_(std::move(rank_model)),
      stage_(rank_model_.setup.stage(rank(), rank_model_.description.plan)),
      cache_(plan_cache()),
      links_(connect_links()),
      source_(rank_model_.checkpoint, std::move(progress)),
      model_(load()),
      kv_(cache_, rank_model_.setup.page_count, KernelPath::kNative, rank()),
      sender_(channel.is_last() ? nullptr
                                : std::make_unique<RowsSender>(*links_, channel.rank() + 1)),
      runner_(model_, kv_,
              {.rows_at_once = rows_at_once(rank_model_.description, rank_model_.options),
               .fails = rank_model_.options.fails,
               .next_stage = sender_.get()}),
      steps_(runner_, sender_.get(),
             passed_row_bytes(rank_model_.description.plan, rank_model_.description.dtype)) {
  const EngineOptions& options = rank_model_.options;
  const ModelDescription& description = rank_model_.description;
  if (options.wired_bytes) wire_memory(*options.wired_bytes);
  if (options.touch_pages) kv_.touch();
  limit_step_memory(source_.loaded_bytes() + bytes_of_pages(),
                    memory_request(description, options, stage_).step_bytes,
                    bytes_ahead(description, options, stage_));
}

void StageWorker::run() {
  const nlohmann::json ready = {{"weights_bytes", source_.loaded_bytes()},
                                {"pages_bytes", bytes_of_pages()}};
  channel_.send_ready(ready.dump());
  spdlog::info("rank {} has layers {} to {} and is ready", rank(), stage_.first, stage_.last - 1);
  StageSteps steps(*links_, steps_, model_);
  WorkerLoop(channel_, *links_, steps, kv_).run();
}

uint64_t StageWorker::bytes_of_pages() const {
  return static_cast<uint64_t>(rank_model_.setup.page_count) * kv_.bytes_per_page();
}

CachePlan StageWorker::plan_cache() const {
  const auto specs = rank_model_.description.plan.cache_specs(rank_model_.description.dtype,
                                                              rank_model_.options.kv_format);
  for (const int cut : rank_model_.setup.cuts) {
    if (!may_cut(specs, cut))
      throw SetupError(
          fmt::format("rank 0 divides the model at layer {}, where it cannot be divided", cut));
  }
  return plan_engine_cache(rank_model_.description, rank_model_.options, rank_model_.setup.cuts);
}

// Before the weights are loaded, which takes longer on some ranks than on others.
std::unique_ptr<TensorLinks> StageWorker::connect_links() const {
  channel_.set_limits(step_limits(cache_, rank_model_.setup, rank_model_.description.plan.vocab));
  return channel_.make_links();
}

DecoderModel StageWorker::load() {
  const ModelDescription& description = rank_model_.description;
  check_same_adapter(merge_adapter(description, rank_model_.options.merge_adapter, source_),
                     rank_model_.setup);
  source_.set_total_bytes(stage_file_bytes(rank_model_.checkpoint, description.plan, stage_));
  return DecoderModel(description.plan, description.dtype, source_, stage_);
}

}  // namespace octavo
