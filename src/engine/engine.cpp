#include "engine/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mlx/memory.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/adapter_loader.h"
#include "engine/draft_model.h"
#include "engine/image_encoder.h"
#include "engine/merge_adapter.h"
#include "engine/pipeline/pipeline_head.h"
#include "engine/plan_encoder.h"
#include "engine/plan_engine.h"
#include "engine/plan_vision.h"
#include "engine/runner.h"
#include "engine/step_memory.h"
#include "engine/tensor/tensor_head.h"
#include "engine/warm_up.h"
#include "kernels/arithmetic.h"
#include "kernels/kernel_check.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/device_buffer.h"
#include "models/checkpoint_fit.h"
#include "models/model_digest.h"
#include "models/tensor_check.h"
#include "scheduler/engine_loop.h"
#include "scheduler/mtp_drafter.h"
#include "scheduler/ngram_drafter.h"

namespace octavo {
namespace {

// Settings of the tower that may come from other files than the weights, or from flags.
std::string processor_facts(const VisionPlan& vision) {
  const auto& levels = vision.processor.levels;
  const Sha256Digest digest =
      sha256({reinterpret_cast<const uint8_t*>(levels.data()), sizeof(levels)});
  return fmt::format("{} {:02x}", vision.describe(), fmt::join(digest, ""));
}

// Everything besides the tokens that determines the bytes of a page.
std::string page_fingerprint(const EngineOptions& options, const ModelDescription& model,
                             const std::optional<Sha256Digest>& merged, const CachePlan& cache,
                             bool takes_images) {
  std::string facts =
      fmt::format("{}\n{} {} kv {} slots {} page {} state {}", options.prefix_disk->fingerprint,
                  arithmetic_name(), name_of(model.dtype), static_cast<int>(options.kv_format),
                  cache.slots, cache.page_bytes, cache.state_pages());
  for (const CacheGroup& group : cache.groups) facts += fmt::format(" {}", group.block_tokens);
  if (model.plan.mtp) facts += " mtp";
  for (size_t i = 1; i < cache.stages.size(); ++i)
    facts += fmt::format(" stage {}", cache.stages[i].first);
  if (options.tensor_parallel) facts += " tensor";
  if (merged) facts += fmt::format(" merged {:02x}", fmt::join(*merged, ""));
  if (takes_images) facts += fmt::format(" images {}", processor_facts(*model.vision));
  return facts;
}

std::unique_ptr<DiskTier> make_disk_tier(const EngineOptions& options,
                                         const ModelDescription& model,
                                         const std::optional<Sha256Digest>& merged,
                                         const CachePlan& cache, bool takes_images) {
  if (!options.prefix_disk) return nullptr;
  if (!options.enable_prefix_caching)
    throw SetupError("--prefix-disk requires the prefix cache; remove --no-enable-prefix-caching");
  DiskTierOptions tier{
      .store = {.folder = options.prefix_disk->path,
                .fingerprint = page_fingerprint(options, model, merged, cache, takes_images),
                .page_bytes = cache.bytes_per_page_id(),
                .most_bytes = options.prefix_disk->bytes},
      .on_warning = [](const std::string& line) { spdlog::warn("{}", line); }};
  tier.observer = options.prefix_observer;
  tier.staging_bytes = disk_staging_bytes(cache);
  return std::make_unique<DiskTier>(std::move(tier));
}

std::unique_ptr<AdapterMemory> make_adapter_memory(const ModelDescription& model,
                                                   const EngineOptions& options) {
  if (!options.adapters) return nullptr;
  return std::make_unique<AdapterMemory>(planned_adapter_targets(model, *options.adapters),
                                         model.dtype, options.adapters->max_loras,
                                         options.adapters->max_lora_rank);
}

// Null without a cluster.
std::unique_ptr<ClusterHead> make_head(const Checkpoint& checkpoint, const ModelDescription& model,
                                       const EngineOptions& options,
                                       const std::optional<Sha256Digest>& merged) {
  if (options.cluster == nullptr) return nullptr;
  if (options.adapters)
    throw SetupError(
        "--enable-lora: is not supported with --pipeline-parallel-size or --tensor-parallel-size");
  const std::string digest = hex_of(model_digest(checkpoint));
  if (options.tensor_parallel)
    return std::make_unique<TensorHead>(*options.cluster, checkpoint, model, options, digest);
  return std::make_unique<PipelineHead>(*options.cluster, model, options, digest, merged);
}

MemoryPlan memory_of(const ClusterHead* head, const ModelDescription& model,
                     const EngineOptions& options) {
  return head != nullptr ? head->memory() : plan_engine_memory(model, options);
}

// This machine's layers.
StageRange stage_of(const ClusterHead* head, const ModelDescription& model) {
  return head != nullptr ? head->layers() : whole_model(model.plan);
}

DecoderModel load_model(const Checkpoint& checkpoint, const ModelDescription& model,
                        const StageRange& stage, WeightSource& source, LinkExchange* ranks) {
  if (!stage.is_whole(model.plan))
    source.set_total_bytes(stage_file_bytes(checkpoint, model.plan, stage));
  if (ranks != nullptr) source.set_share(ranks->share());
  return DecoderModel(model.plan, model.dtype, source, stage, ranks);
}

// Both return null if the engine takes no images.
std::unique_ptr<VisionTower> load_tower(const ModelDescription& model, const ImagePlan& plan,
                                        WeightSource& source) {
  if (plan.max_tokens == 0) return nullptr;
  return load_vision_tower(*model.vision, model.dtype, source);
}

std::unique_ptr<ImageEncoder> make_encoder(const ModelDescription& model,
                                           const EngineOptions& options, const VisionTower* tower) {
  if (tower == nullptr) return nullptr;
  return std::make_unique<ImageEncoder>(*model.vision, *tower, options.max_num_batched_tokens);
}

std::unique_ptr<Drafter> make_drafter(const SpeculativeConfig& config,
                                      const std::optional<DraftPlan>& draft) {
  switch (config.method) {
    case SpeculativeMethod::kNone:
      return nullptr;
    case SpeculativeMethod::kNgram:
      return std::make_unique<NgramDrafter>(
          NgramLengths{config.prompt_lookup_min, config.prompt_lookup_max});
    case SpeculativeMethod::kDraftModel:
      return std::make_unique<DraftModel>(*draft);
    case SpeculativeMethod::kMtp:
      return std::make_unique<MtpDrafter>();
  }
  return nullptr;
}

// Refuses a GGUF file with missing or unknown tensors, and compares the GPU's kernels, before any weights
// are read.
ModelDescription describe_checked(const Checkpoint& checkpoint, const EngineOptions& options) {
  ModelDescription model = describe_model(checkpoint, options);
  if (checkpoint.gguf() != nullptr) check_tensors(checkpoint, model);
  if (device_facts().kind == DeviceKind::kMetal) {
    if (const std::string problem = check_kernels(model.dtype); !problem.empty())
      spdlog::warn("{}", problem);
  }
  return model;
}

}  // namespace

// Created, used and destroyed by the engine thread.
struct Engine::Loaded {
  Loaded(const Checkpoint& checkpoint, const EngineOptions& given, Progress progress)
      : description(describe_checked(checkpoint, given)),
        options(options_for(description, given)),
        source(checkpoint, std::move(progress)),
        merged(merge_adapter(description, options.merge_adapter, source)),
        head(make_head(checkpoint, description, options, merged)),
        plan(memory_of(head.get(), description, options)),
        speculation(plan_speculation(description, options)),
        draft(plan_draft(description, options)),
        stage(stage_of(head.get(), description)),
        model(load_model(checkpoint, description, stage, source, head ? head->ranks() : nullptr)),
        images_refused(octavo::images_refused(description, options, plan.max_model_len)),
        image_plan(plan_images(description, options, plan.max_model_len)),
        tower(load_tower(description, image_plan, source)),
        images(make_encoder(description, options, tower.get())),
        adapter_loader(options.adapters
                           ? std::make_unique<AdapterLoader>(description, *options.adapters)
                           : nullptr),
        adapters(make_adapter_memory(description, options)),
        kv(head ? head->cache() : plan_engine_cache(description, options), plan.page_count,
           KernelPath::kNative),
        runner(model, kv,
               {.rows_at_once = rows_at_once(description, options),
                .adapters = adapters.get(),
                .fails = options.fails,
                .next_stage = head ? head->next_stage() : nullptr,
                .ranks = head ? head->ranks() : nullptr,
                .images = images.get()}),
        steps(connect_ranks()),
        pool(plan.page_count),
        prefixes(kv.plan(), pool),
        disk_tier(make_disk_tier(options, description, merged,
                                 head ? head->whole_cache() : kv.plan(), images != nullptr)),
        disk(disk_tier ? std::make_unique<PrefixDisk>(prefixes, *disk_tier, pages()) : nullptr),
        scheduler(plan_scheduler(description, options, plan), prefixes, disk.get(),
                  make_drafter(speculation, draft)),
        loop({.max_open_requests = options.max_open_requests}, prefixes, scheduler, steps) {
    if (options.wired_bytes) wire_memory(*options.wired_bytes);
    if (options.touch_pages) kv.touch();
    limit_step_memory(device_bytes(), plan.step_bytes,
                      bytes_ahead(head ? head->part() : description, options, stage),
                      plan.image_bytes);
    if (!head) warm_up_kernels();
    if (disk_tier) disk_tier->on_arrival([this] { loop.wake(); });
    if (options.prefix_observer != nullptr) prefixes.observe(*options.prefix_observer);
  }
  ~Loaded() {
    if (disk_tier) disk_tier->on_arrival(nullptr);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  // Waits until the other ranks are ready. Returns what runs steps.
  StepRunner& connect_ranks() {
    if (!head) return runner;
    head->connect(runner, kv);
    return head->runner();
  }
  PageMemory& pages() { return head ? head->pages() : static_cast<PageMemory&>(kv); }

  void warm_up_kernels() {
    warm_up(runner, kv.plan(),
            {.rows = options.max_num_batched_tokens,
             .sequences = options.max_num_seqs,
             .context = plan.max_model_len,
             .predicts = description.plan.mtp.has_value(),
             .draws = !description.pooling.has_value(),
             .whole_prompts = description.plan.encoder.has_value(),
             .has_adapters = options.adapters.has_value()});
  }

  // Memory other than steps in device buffers.
  uint64_t device_bytes() const {
    const uint64_t draft_bytes = draft ? draft->model.weights_bytes + draft->pages_bytes() : 0;
    const uint64_t slot_bytes = adapters ? adapters->bytes() : 0;
    return source.loaded_bytes() + plan.kv_bytes + draft_bytes + slot_bytes;
  }
  // The part of it that MLX counts.
  uint64_t counted_bytes() const { return kMlxCountsDeviceBuffers ? device_bytes() : 0; }

  ModelDescription description;
  EngineOptions options;  // of options_for()
  WeightSource source;
  std::optional<Sha256Digest> merged;  // --merge-adapter
  std::unique_ptr<ClusterHead> head;   // null: one machine
  MemoryPlan plan;
  SpeculativeConfig speculation;
  std::optional<DraftPlan> draft;
  StageRange stage;
  DecoderModel model;
  std::string images_refused;  // empty: the engine takes images
  ImagePlan image_plan;
  std::unique_ptr<VisionTower> tower;  // both null if images are refused
  std::unique_ptr<ImageEncoder> images;
  std::unique_ptr<AdapterLoader> adapter_loader;  // null: LoRA is off
  std::unique_ptr<AdapterMemory> adapters;
  KvStore kv;
  Runner runner;
  StepRunner& steps;  // the runner, or that of the cluster
  PagePool pool;
  PrefixCache prefixes;
  std::unique_ptr<DiskTier> disk_tier;  // null: no disk tier
  std::unique_ptr<PrefixDisk> disk;
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
        checkpoint.check();
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
  Loaded* loaded_ = nullptr;  // owned by the thread
};

Engine::Engine(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress) {
  use_device(options.device);
  thread_ = std::make_unique<Thread>(checkpoint, options, std::move(progress));
}

Engine::~Engine() = default;

const ModelDescription& Engine::model() const { return thread_->loaded().description; }
const MemoryPlan& Engine::memory() const { return thread_->loaded().plan; }
const SpeculativeConfig& Engine::speculation() const { return thread_->loaded().speculation; }
uint64_t Engine::weights_bytes() const { return thread_->loaded().source.loaded_bytes(); }
const std::optional<Sha256Digest>& Engine::merged_adapter() const {
  return thread_->loaded().merged;
}
int Engine::max_image_tokens() const { return thread_->loaded().image_plan.max_tokens; }
const std::string& Engine::images_refused() const { return thread_->loaded().images_refused; }
std::shared_ptr<const ScoreHead> Engine::score_head() const {
  return thread_->loaded().model.score_head();
}
int Engine::max_whole_prompt() const {
  return thread_->loaded().scheduler.options().longest_whole_prompt();
}
std::shared_ptr<const Adapter> Engine::load_adapter(const std::string& name,
                                                    const std::string& folder, bool replaces) {
  AdapterLoader* loader = thread_->loaded().adapter_loader.get();
  if (loader == nullptr) throw SetupError("LoRA is off; start with --enable-lora");
  return loader->load(name, folder, replaces);
}
std::string Engine::ranks_table() const {
  const auto& head = thread_->loaded().head;
  return head ? head->table() : std::string();
}
DiskTier* Engine::disk_tier() const { return thread_->loaded().disk_tier.get(); }
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
  // A step of a large model may take long; as long as kernels complete, it is not stuck.
  return std::max(thread_->loaded().loop.heartbeat(), compute_pool().last_done());
}

}  // namespace octavo
