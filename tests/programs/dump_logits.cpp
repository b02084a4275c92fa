// Computes a model's logits for given token ids, so that Python can compare them with an oracle. Serves
// one request per line until stdin ends: loading MLX takes longer than most of the tests' models.
//
// stdin, one line each: {"model": path, "dtype": name or null, "block_tokens": n,
//         "kernels": "native", "reference" or "metal" (simulated),
//         "chunk": 0 or rows per step, "prompts": [[ids], ...],
//         "batch": all prompts in one flat batch, "mtp": logits of the multi-token prediction
//         layer (those of a prompt's last position are of no use), "out": path,
//         "adapters": [folders of LoRA adapters], "adapter_of": [index of each prompt's, -1: none],
//         "lora_experts": adapters may change experts,
//         "merge": folder of an adapter to merge into the weights}
// out: float32 logits of every position, prompts one after the other ([tokens, vocab] each)
// stdout, one line each: {"vocab": n, "launches": {"paged_attention.cpu": n, ...}} or {"error": text}
#include <algorithm>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/runner.h"
#include "kernels/lora.h"
#include "models/adapters/adapter_memory.h"
#include "models/adapters/merged_adapter.h"
#include "models/model_description.h"
#include "support/simulated_device.h"

namespace octavo {
namespace {

using Json = nlohmann::json;
using Prompt = std::vector<TokenId>;

class Dumper {
 public:
  // `adapters`: null without any.
  Dumper(const Json& request, const ModelDescription& description, const DecoderModel& model,
         AdapterMemory* adapters)
      : path_(request.at("kernels") == "reference" ? KernelPath::kReference : KernelPath::kNative),
        chunk_(request.value("chunk", 0)),
        mtp_(description.plan.mtp.has_value()),
        plan_(plan_cache(description.plan.cache_specs(description.dtype, KvFormat::kPlain),
                         request.at("block_tokens"))),
        prompts_(request.at("prompts").get<std::vector<Prompt>>()),
        adapter_of_(request.value("adapter_of", std::vector<int>(prompts_.size(), -1))),
        kv_(plan_, page_count(), path_),
        pool_(kv_.page_count()),
        runner_(model, kv_, {.path = path_, .adapters = adapters}) {
    fill_with_nan();
  }

  // Logits per prompt, each [tokens * vocab].
  std::vector<std::vector<float>> run(bool batched) {
    std::vector<std::vector<float>> results(prompts_.size());
    if (batched) {
      std::vector<size_t> all(prompts_.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      run_together(all, results);
    } else {
      for (size_t i = 0; i < prompts_.size(); ++i) run_together({i}, results);
    }
    return results;
  }

 private:
  int page_count() const {
    int pages = 1;
    for (const auto& prompt : prompts_) pages += plan_.pages_for(static_cast<int>(prompt.size()));
    return pages;
  }

  // Data past a context must not affect the result.
  void fill_with_nan() {
    for (const auto& buffer : kv_.buffers()) {
      auto* bytes = const_cast<unsigned char*>(buffer.data<unsigned char>());
      std::fill(bytes, bytes + buffer.nbytes(), static_cast<unsigned char>(0xff));
    }
  }

  // Each step runs a chunk of every prompt that has rows left.
  void run_together(const std::vector<size_t>& which, std::vector<std::vector<float>>& results) {
    std::vector<SequencePages> pages;
    std::vector<size_t> done(which.size(), 0);
    for (size_t i = 0; i < which.size(); ++i) pages.emplace_back(kv_.plan(), pool_);
    for (bool more = true; more;) {
      more = false;
      BatchBuilder builder(plan_, mtp_);
      std::vector<std::pair<size_t, size_t>> order;  // (prompt, rows) in batch order
      for (size_t i = 0; i < which.size(); ++i) {
        const Prompt& prompt = prompts_[which[i]];
        if (done[i] == prompt.size()) continue;
        const size_t left = prompt.size() - done[i];
        const size_t rows = chunk_ > 0 ? std::min(left, static_cast<size_t>(chunk_)) : left;
        if (!pages[i].grow_to(static_cast<int>(done[i] + rows)))
          throw std::runtime_error("pool too small");
        const int first =
            builder.add_sequence(std::span(prompt).subspan(done[i], rows),
                                 static_cast<int>(done[i]), pages[i], adapter_of_.at(which[i]));
        pages[i].state().advance(static_cast<int>(done[i]));
        if (rows < left)
          builder.set_next_token(first + static_cast<int>(rows) - 1, prompt[done[i] + rows]);
        for (size_t row = 0; row < rows; ++row) builder.want_logits(first + static_cast<int>(row));
        order.emplace_back(which[i], rows);
        done[i] += rows;
        more = more || done[i] < prompt.size();
      }
      collect(runner_.logits(builder.build()), order, results);
    }
  }

  static void collect(const mx::array& logits, const std::vector<std::pair<size_t, size_t>>& order,
                      std::vector<std::vector<float>>& results) {
    const float* next = logits.data<float>();
    for (const auto& [prompt, rows] : order) {
      const size_t count = rows * static_cast<size_t>(logits.shape(1));
      results[prompt].insert(results[prompt].end(), next, next + count);
      next += count;
    }
  }

  KernelPath path_;
  int chunk_;
  bool mtp_;
  CachePlan plan_;
  std::vector<Prompt> prompts_;
  std::vector<int> adapter_of_;  // slots
  KvStore kv_;
  PagePool pool_;
  Runner runner_;
};

// The request's adapters, one per slot; null if there are none.
std::unique_ptr<AdapterMemory> load_adapters(const Json& request, const ModelDescription& model) {
  const auto folders = request.value("adapters", std::vector<std::string>());
  if (folders.empty()) return nullptr;
  const bool experts = request.value("lora_experts", false);
  const AdapterTargets targets =
      adapter_targets(model.plan, experts ? AdaptedExperts::kAll : AdaptedExperts::kNone);
  std::vector<LoraWeights> adapters;
  int max_rank = 1;  // the simulator is slow, and Metal multiplies by this many rows of A
  for (const std::string& folder : folders) {
    const LoraLimits limits{.max_rank = kMostLoraRank, .dtype = model.dtype};
    adapters.push_back(read_lora(folder, model.plan, targets, limits));
    for (const LoraModule& module : adapters.back().modules)
      max_rank = std::max(max_rank, module.rank);
  }
  auto memory = std::make_unique<AdapterMemory>(targets, model.dtype,
                                                static_cast<int>(folders.size()), max_rank);
  for (size_t i = 0; i < adapters.size(); ++i) memory->write(static_cast<int>(i), adapters[i]);
  return memory;
}

// The launches since `before`.
Json launches_since(const std::map<std::string, int64_t>& before) {
  Json counts = Json::object();
  for (const auto& [kernel, count] : launch_counts()) {
    const auto earlier = before.find(kernel);
    const int64_t launches = count - (earlier == before.end() ? 0 : earlier->second);
    if (launches > 0) counts[kernel] = launches;
  }
  return counts;
}

Json dump(const Json& request) {
  const std::map<std::string, int64_t> before = launch_counts();
  const Checkpoint checkpoint = Checkpoint::open(request.at("model").get<std::string>());
  std::optional<DType> dtype;
  if (request.contains("dtype") && !request["dtype"].is_null()) {
    dtype = parse_dtype(request["dtype"].get<std::string>(), "dtype");
  }
  const ModelDescription description = describe_model(
      checkpoint, dtype, std::nullopt, UnknownKeys::kWarn, request.value("mtp", false));
  WeightSource source(checkpoint, nullptr);
  if (request.contains("merge"))
    source.set_merged_adapter(
        std::make_unique<MergedAdapter>(request["merge"].get<std::string>(), description.plan));
  const DecoderModel model(description.plan, description.dtype, source);
  SimulatedDevice device(request.at("kernels") == "metal");
  std::ofstream out(request.at("out").get<std::string>(), std::ios::binary);
  const auto adapters = load_adapters(request, description);
  Dumper dumper(request, description, model, adapters.get());
  for (const auto& logits : dumper.run(request.value("batch", false))) {
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size() * sizeof(float)));
  }
  device.finish();
  return {{"vocab", description.plan.vocab}, {"launches", launches_since(before)}};
}

}  // namespace
}  // namespace octavo

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    octavo::Json answer;
    try {
      answer = octavo::dump(octavo::Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer << std::endl;
  }
}
