#include "engine/run_worker.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/merge_adapter.h"
#include "engine/pipeline/stage_setup.h"
#include "engine/pipeline/worker_loop.h"
#include "engine/plan_engine.h"
#include "engine/runner.h"
#include "engine/step_memory.h"
#include "kernels/arithmetic.h"
#include "kernels/runtime/device.h"
#include "models/checkpoint_fit.h"
#include "models/model_digest.h"
#include "models/tensor_check.h"

namespace octavo {
namespace {

void check_same_model(const Checkpoint& checkpoint, const StageSetup& setup) {
  if (setup.arithmetic != arithmetic_name())
    throw SetupError(fmt::format(
        "rank 0 computes with arithmetic {}, this rank with {}; use the same version and device",
        setup.arithmetic, arithmetic_name()));
  if (setup.model_digest != hex_of(model_digest(checkpoint)))
    throw SetupError(fmt::format("{}: rank 0 has other files of this model; copy its files",
                                 checkpoint.path().string()));
}

void check_same_adapter(const std::optional<Sha256Digest>& merged, const StageSetup& setup) {
  if ((merged ? hex_of(*merged) : "") != setup.merged)
    throw SetupError("--merge-adapter: must be given on every rank, with the same files");
}

// The rank's layers, pages and kernels.
class Worker {
 public:
  Worker(const Checkpoint& checkpoint, const EngineOptions& own, WorkerChannel& channel,
         Engine::Progress progress)
      : channel_(channel),
        setup_(StageSetup::from_json(channel.wait_setup())),
        options_(setup_.options(own)),
        description_(describe(checkpoint)),
        stage_(setup_.stage(rank(), description_.plan)),
        cache_(plan_cache_of_setup()),
        links_(connect_links()),
        source_(checkpoint, std::move(progress)),
        model_(load(checkpoint)),
        kv_(cache_, setup_.page_count, KernelPath::kNative, rank()),
        sender_(channel.is_last() ? nullptr
                                  : std::make_unique<RowsSender>(*links_, channel.rank() + 1)),
        runner_(model_, kv_,
                {.rows_at_once = rows_at_once(description_, options_),
                 .fails = options_.fails,
                 .next_stage = sender_.get()}),
        steps_(runner_, sender_.get(), passed_row_bytes(description_.plan, description_.dtype)) {
    if (options_.wired_bytes) wire_memory(*options_.wired_bytes);
    if (options_.touch_pages) kv_.touch();
    limit_step_memory(source_.loaded_bytes() + bytes_of_pages(),
                      memory_request(description_, options_, stage_).step_bytes,
                      bytes_ahead(description_, options_, stage_));
  }

  void run() {
    const nlohmann::json ready = {{"weights_bytes", source_.loaded_bytes()},
                                  {"pages_bytes", bytes_of_pages()}};
    channel_.send_ready(ready.dump());
    spdlog::info("rank {} has layers {} to {} and is ready", rank(), stage_.first, stage_.last - 1);
    WorkerLoop(channel_, *links_, steps_, kv_, model_).run();
  }

 private:
  size_t rank() const { return static_cast<size_t>(channel_.rank()); }
  uint64_t bytes_of_pages() const {
    return static_cast<uint64_t>(setup_.page_count) * kv_.bytes_per_page();
  }

  ModelDescription describe(const Checkpoint& checkpoint) const {
    check_same_model(checkpoint, setup_);
    ModelDescription model = describe_model(checkpoint, options_);
    if (checkpoint.gguf() != nullptr) check_tensors(checkpoint, model);
    return model;
  }
  CachePlan plan_cache_of_setup() const {
    const auto specs = description_.plan.cache_specs(description_.dtype, options_.kv_format);
    for (const int cut : setup_.cuts) {
      if (!may_cut(specs, cut))
        throw SetupError(
            fmt::format("rank 0 divides the model at layer {}, where it cannot be "
                        "divided",
                        cut));
    }
    return plan_engine_cache(description_, options_, setup_.cuts);
  }
  // Before the weights are loaded, which takes longer on some ranks than on others.
  std::unique_ptr<TensorLinks> connect_links() const {
    channel_.set_limits(step_limits(cache_, setup_, description_.plan.vocab));
    return channel_.make_links();
  }
  DecoderModel load(const Checkpoint& checkpoint) {
    check_same_adapter(merge_adapter(description_, options_.merge_adapter, source_), setup_);
    source_.set_total_bytes(stage_file_bytes(checkpoint, description_.plan, stage_));
    return DecoderModel(description_.plan, description_.dtype, source_, stage_);
  }

  WorkerChannel& channel_;
  StageSetup setup_;
  EngineOptions options_;
  ModelDescription description_;
  StageRange stage_;
  CachePlan cache_;
  std::unique_ptr<TensorLinks> links_;
  WeightSource source_;
  DecoderModel model_;
  KvStore kv_;
  std::unique_ptr<RowsSender> sender_;  // null on the last rank
  Runner runner_;
  StageRunner steps_;
};

}  // namespace

void run_worker(const Checkpoint& checkpoint, const EngineOptions& options, WorkerChannel& channel,
                Engine::Progress progress) {
  use_device(options.device);
  std::optional<Worker> worker;
  try {
    worker.emplace(checkpoint, options, channel, std::move(progress));
  } catch (const SetupError& error) {
    channel.send_error(error.what());
    throw;
  }
  worker->run();
}

}  // namespace octavo
