#include "engine/engine.h"

#include <mlx/memory.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "engine/engine_loop.h"
#include "engine/runner.h"
#include "kernels/device.h"
#include "kernels/device_buffer.h"

namespace octavo {
namespace {

// Sequences the pool is made for without --kv-memory, and how long they are taken to be: enough for
// a small server, and not the whole machine.
constexpr int kUsualSequences = 32;
constexpr int kUsualTokens = 2048;

SchedulerOptions scheduler_options(const EngineOptions& options, const ModelDescription& model,
                                   const MemoryPlan& plan) {
  return {.max_num_seqs = options.max_num_seqs,
          .max_num_batched_tokens = options.max_num_batched_tokens,
          .max_model_len = plan.max_model_len,
          .vocab = model.plan.vocab,
          .draws = !model.pooling.has_value(),
          .stop_token_ids = {model.stop_token_ids.begin(), model.stop_token_ids.end()},
          .policy = options.scheduling_policy,
          .mask_threads = std::clamp(compute_pool().threads() / 4, 1, 4),
          .enable_prefix_caching = options.enable_prefix_caching};
}

// A step that only decodes is queued at once, behind one that still runs.
int rows_at_once(const EngineOptions& options) {
  return std::min(options.max_num_seqs, options.max_num_batched_tokens);
}

uint64_t bytes_ahead(const ModelDescription& model, const EngineOptions& options) {
  return static_cast<uint64_t>(rows_at_once(options)) * row_bytes(model);
}

}  // namespace

ModelDescription describe_model(const Checkpoint& checkpoint, const EngineOptions& options) {
  return describe_model(checkpoint, options.dtype, plan_pooling(checkpoint, options.pooling));
}

CachePlan plan_engine_cache(const ModelDescription& model, const EngineOptions& options) {
  const int block = options.block_tokens;
  if (block < 8 || block > 4096 || block % 8 != 0) {
    throw SetupError("--block-size: must be a multiple of 8 from 8 to 4096");
  }
  return plan_cache(model.plan.cache_specs(model.dtype, options.kv_format), block);
}

MemoryPlan plan_engine_memory(const ModelDescription& model, const EngineOptions& options) {
  if (options.max_num_batched_tokens < 1) {
    throw SetupError("--max-num-batched-tokens: must be at least 1");
  }
  if (options.max_num_seqs < 1) throw SetupError("--max-num-seqs: must be at least 1");
  const DeviceFacts device = device_facts();
  if (options.wired_bytes) check_wired_limit(device, *options.wired_bytes);
  const bool on_gpu = device.kind == DeviceKind::kMetal;
  const int logit_rows = std::min(options.max_num_batched_tokens, kLogitRows);
  MemoryRequest request{
      .device_bytes = device_memory(device, usable_memory_bytes()),
      .memory_fraction = options.memory_fraction,
      .weights_bytes = model.weights_bytes,
      .step_bytes = step_bytes(model, options.max_num_batched_tokens, logit_rows) +
                    bytes_ahead(model, options),
      .model_context = model.plan.max_context,
      .max_model_len = options.max_model_len,
      .kv_bytes = options.kv_bytes,
      .step_tokens = options.max_num_batched_tokens,
      .usual_sequences = std::min(options.max_num_seqs, kUsualSequences),
      .usual_tokens = kUsualTokens,
  };
  if (on_gpu) {
    request.device_note = "of it Metal recommends to use at most this";
    request.buffer_bytes = device.buffer_bytes;
  }
  return plan_memory(request, plan_engine_cache(model, options));
}

// Made, used and destroyed by the engine thread.
struct Engine::Loaded {
  Loaded(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress)
      : description(describe_model(checkpoint, options)),
        plan(plan_engine_memory(description, options)),
        source(checkpoint, std::move(progress)),
        model(description.plan, description.dtype, source),
        kv(plan_engine_cache(description, options), plan.page_count, KernelPath::kNative),
        runner(model, kv, {.rows_at_once = rows_at_once(options), .fails = options.fails}),
        pool(plan.page_count),
        prefixes(kv.plan(), pool),
        scheduler(scheduler_options(options, description, plan), prefixes),
        loop({.max_open_requests = options.max_open_requests}, prefixes, scheduler, runner) {
    if (options.wired_bytes) wire_memory(*options.wired_bytes);
    if (options.touch_pages) kv.touch();
    // Weights and pages are ours; what MLX allocates is the step. It queues no further while it
    // holds more than this (see step_bytes).
    mx::set_memory_limit(counted_bytes() +
                         (plan.step_bytes - bytes_ahead(description, options)) / 2);
    mx::set_cache_limit(plan.step_bytes);
  }

  // What MLX counts beside steps.
  uint64_t counted_bytes() const {
    return kMlxCountsDeviceBuffers ? source.loaded_bytes() + plan.kv_bytes : 0;
  }

  ModelDescription description;
  MemoryPlan plan;
  WeightSource source;
  DecoderModel model;
  KvStore kv;
  Runner runner;
  PagePool pool;
  PrefixCache prefixes;
  Scheduler scheduler;
  EngineLoop loop;
};

class Engine::Thread {
 public:
  Thread(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress) {
    std::promise<Loaded*> ready;
    std::future<Loaded*> loaded = ready.get_future();
    thread_ = std::thread([&, ready = std::move(ready)]() mutable {
      std::unique_ptr<Loaded> engine;
      try {
        engine = std::make_unique<Loaded>(checkpoint, options, std::move(progress));
      } catch (...) {
        ready.set_exception(std::current_exception());
        return;
      }
      EngineLoop& loop = engine->loop;
      ready.set_value(engine.get());
      loop.run();
    });
    try {
      loaded_ = loaded.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~Thread() {
    loaded_->loop.stop();
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  Loaded& loaded() { return *loaded_; }

 private:
  std::thread thread_;
  Loaded* loaded_ = nullptr;  // the thread's own; lives as long as it
};

Engine::Engine(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress) {
  use_device(options.device);
  thread_ = std::make_unique<Thread>(checkpoint, options, std::move(progress));
}

Engine::~Engine() = default;

const ModelDescription& Engine::model() const { return thread_->loaded().description; }
const MemoryPlan& Engine::memory() const { return thread_->loaded().plan; }
uint64_t Engine::weights_bytes() const { return thread_->loaded().source.loaded_bytes(); }
uint64_t Engine::step_peak_bytes() const {
  const uint64_t peak = mx::get_peak_memory();
  return peak - std::min(peak, thread_->loaded().counted_bytes());
}

RequestId Engine::submit(Request request, UpdateSink sink) {
  return thread_->loaded().loop.submit(std::move(request), std::move(sink));
}
void Engine::abort(RequestId id, std::optional<int> only_choice) {
  thread_->loaded().loop.abort(id, only_choice);
}
void Engine::reset_prefix_cache() { thread_->loaded().loop.reset_prefix_cache(); }
void Engine::close() { thread_->loaded().loop.close(); }
bool Engine::wait_until_idle(std::chrono::milliseconds timeout) {
  return thread_->loaded().loop.wait_until_idle(timeout);
}
EngineStats Engine::stats() const { return thread_->loaded().loop.stats(); }
std::chrono::steady_clock::time_point Engine::heartbeat() const {
  // A step of a large model takes long; while kernels end one after the other it is not stuck.
  return std::max(thread_->loaded().loop.heartbeat(), compute_pool().last_done());
}

}  // namespace octavo
