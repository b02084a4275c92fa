#include "engine/tensor/tensor_worker.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/cluster/worker_loop.h"
#include "engine/plan_engine.h"
#include "engine/step_memory.h"
#include "engine/tensor/plan_shares.h"
#include "engine/tensor/tensor_steps.h"
#include "kernels/runtime/device.h"

namespace octavo {

TensorWorker::TensorWorker(RankModel rank_model, WorkerChannel& channel, Engine::Progress progress)
    : channel_(channel),
      rank_model_(std::move(rank_model)),
      part_(part_of_rank(rank_model_.description, channel.size(), 0)),
      cache_(plan_engine_cache(part_, rank_model_.options)),
      links_(connect_links()),
      exchange_(*links_),
      source_(rank_model_.checkpoint, std::move(progress)),
      model_(load()),
      kv_(cache_, rank_model_.setup.page_count, KernelPath::kNative),
      runner_(model_, kv_,
              {.rows_at_once = rows_at_once(part_, rank_model_.options),
               .fails = rank_model_.options.fails,
               .ranks = &exchange_}) {
  const EngineOptions& options = rank_model_.options;
  if (options.wired_bytes) wire_memory(*options.wired_bytes);
  if (options.touch_pages) kv_.touch();
  limit_step_memory(source_.loaded_bytes() + bytes_of_pages(),
                    memory_request(part_, options).step_bytes, bytes_ahead(part_, options));
}

void TensorWorker::run() {
  const nlohmann::json ready = {{"weights_bytes", source_.loaded_bytes()},
                                {"pages_bytes", bytes_of_pages()}};
  channel_.send_ready(ready.dump());
  spdlog::info("rank {} has a part of every layer and is ready", channel_.rank());
  TensorSteps steps(runner_);
  WorkerLoop(channel_, *links_, steps, kv_).run();
}

uint64_t TensorWorker::bytes_of_pages() const {
  return static_cast<uint64_t>(rank_model_.setup.page_count) * kv_.bytes_per_page();
}

// Before the weights are loaded, which takes longer on some ranks than on others.
std::unique_ptr<TensorLinks> TensorWorker::connect_links() const {
  channel_.set_limits(step_limits(cache_, rank_model_.setup, part_.plan.vocab));
  return channel_.make_links(true);
}

DecoderModel TensorWorker::load() {
  if (!rank_model_.options.merge_adapter.empty())
    throw SetupError("--merge-adapter: is not supported with --tensor-parallel-size");
  const ModelDescription& whole = rank_model_.description;
  source_.set_share(exchange_.share());
  return DecoderModel(whole.plan, whole.dtype, source_, whole_model(whole.plan), &exchange_);
}

}  // namespace octavo
