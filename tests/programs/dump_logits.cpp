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
//         "merge": folder of an adapter to merge into the weights,
//         "images": [[{"file": path, "offset": of its first placeholder}, ...] of each prompt],
//         "image_rows": patches that the tower multiplies at once}
// out: float32 logits of every position, prompts one after the other ([tokens, vocab] each)
// stdout, one line each: {"vocab": n, "launches": {"paged_attention.cpu": n, ...}} or {"error": text}
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
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
#include "scheduler/image_positions.h"
#include "support/prompt_images.h"
#include "support/simulated_device.h"
#include "vision/decode_image.h"

namespace octavo {
namespace {

using Json = nlohmann::json;
using Prompt = std::vector<TokenId>;

// Images of all prompts, encoded before the first step.
class DumpedImages {
 public:
  // `tower`: null if no prompt has images.
  DumpedImages(const Json& request, const ModelDescription& model, const LoadedTower* tower,
               KernelPath path)
      : three_axes_(has_three_axes(model.plan)) {
    if (tower == nullptr) return;
    sees_block_ = tower->plan.sees_block;
    tower_ = tower;
    encoder_.emplace(tower->plan, *tower->tower, tower->rows_at_once, path);
    for (const Json& prompt : request.at("images")) {
      images_.emplace_back();
      for (const Json& image : prompt)
        images_.back().push_back(prompt_image(
            tower->plan, decode_file(image.at("file").get<std::string>()), image.at("offset")));
    }
  }

  ImageEncoder* encoder() { return encoder_ ? &*encoder_ : nullptr; }

  void encode(Runner& runner) {
    for (const auto& prompt : images_) {
      ids_.emplace_back();
      for (const PromptImage& image : prompt) {
        ids_.back().push_back(++last_id_);
        for (int piece = 0; piece < tower_->pieces(image); ++piece) {
          Batch batch;
          batch.image_work.encodes = last_id_;
          if (piece == 0) batch.image_work.pixels = image.pixels;
          runner.logits(batch);
        }
      }
    }
  }

  // The end of a chunk [start, end) that divides no image, if that is not allowed.
  size_t end_of_chunk(size_t prompt, size_t end) const {
    if (!sees_block_) return end;
    for (const PromptImage& image : images_[prompt]) {
      const auto first = static_cast<size_t>(image.offset);
      const auto last = static_cast<size_t>(image.last_row());
      if (first < end && end <= last) end = last + 1;
    }
    return end;
  }

  // Rows [first, first + count) of the step are those of the prompt from `start` on.
  void place(BatchBuilder& builder, size_t prompt, int first, int start, int count) const {
    if (images_.empty()) return;
    for (int row = first; row < first + count; ++row) {
      const int index = start + row - first;
      if (three_axes_) builder.set_rope(row, rope_position(images_[prompt], index));
      for (size_t i = 0; i < images_[prompt].size(); ++i)
        place_row(builder, row, index, images_[prompt][i], ids_[prompt][i]);
    }
  }

 private:
  static Image decode_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return decode_image(std::as_bytes(std::span(bytes)));
  }

  void place_row(BatchBuilder& builder, int row, int index, const PromptImage& image,
                 ImageId id) const {
    const int width = image.grid_w + (image.row_breaks ? 1 : 0);
    const int line = (index - image.offset) / width;
    const int column = (index - image.offset) % width;
    if (index < image.offset || index >= image.end() || column == image.grid_w) return;
    builder.place_image(
        {.row = row, .image = id, .first = line * image.grid_w + column, .count = 1});
    if (sees_block_) builder.set_last_visible(row, image.last_row());
  }

  bool three_axes_;
  bool sees_block_ = false;
  const LoadedTower* tower_ = nullptr;
  std::optional<ImageEncoder> encoder_;
  std::vector<std::vector<PromptImage>> images_;  // by prompt; empty: none has any
  std::vector<std::vector<ImageId>> ids_;
  ImageId last_id_ = 0;
};

KernelPath path_of(const Json& request) {
  return request.at("kernels") == "reference" ? KernelPath::kReference : KernelPath::kNative;
}

class Dumper {
 public:
  // `adapters`, `tower`: null without any.
  Dumper(const Json& request, const ModelDescription& description, const DecoderModel& model,
         AdapterMemory* adapters, const LoadedTower* tower)
      : path_(path_of(request)),
        chunk_(request.value("chunk", 0)),
        mtp_(description.plan.mtp.has_value()),
        plan_(plan_cache(description.plan.cache_specs(description.dtype, KvFormat::kPlain),
                         request.at("block_tokens"))),
        prompts_(request.at("prompts").get<std::vector<Prompt>>()),
        adapter_of_(request.value("adapter_of", std::vector<int>(prompts_.size(), -1))),
        kv_(plan_, page_count(), path_),
        pool_(kv_.page_count()),
        images_(request, description, tower, path_),
        runner_(model, kv_, {.path = path_, .adapters = adapters, .images = images_.encoder()}) {
    fill_with_nan();
    images_.encode(runner_);
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
        const size_t chunk = chunk_ > 0 ? std::min(left, static_cast<size_t>(chunk_)) : left;
        const size_t rows = images_.end_of_chunk(which[i], done[i] + chunk) - done[i];
        if (!pages[i].grow_to(static_cast<int>(done[i] + rows)))
          throw std::runtime_error("pool too small");
        const int first =
            builder.add_sequence(std::span(prompt).subspan(done[i], rows),
                                 static_cast<int>(done[i]), pages[i], adapter_of_.at(which[i]));
        images_.place(builder, which[i], first, static_cast<int>(done[i]), static_cast<int>(rows));
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
  DumpedImages images_;
  Runner runner_;
};

// Null without images.
std::unique_ptr<LoadedTower> load_tower(const Json& request, const ModelDescription& model,
                                        WeightSource& source) {
  if (!request.contains("images")) return nullptr;
  if (!model.vision) throw std::runtime_error("no images: " + model.vision_absent);
  return std::make_unique<LoadedTower>(model, source, request.value("image_rows", 512));
}

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
  const auto tower = load_tower(request, description, source);
  SimulatedDevice device(request.at("kernels") == "metal");
  std::ofstream out(request.at("out").get<std::string>(), std::ios::binary);
  const auto adapters = load_adapters(request, description);
  Dumper dumper(request, description, model, adapters.get(), tower.get());
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
