#include "models/adapters/lora_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/units.h"
#include "kernels/cpu/convert.h"
#include "models/adapters/adapter_config.h"
#include "models/format/printable.h"
#include "models/format/safetensors.h"
#include "models/weight_view.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestHeader = 16u << 20;
constexpr size_t kLargestConfig = 16u << 20;

struct AdapterFiles {
  AdapterFormat format;
  fs::path config;
  fs::path tensors;
};

AdapterFiles find_adapter_files(const fs::path& folder) {
  std::error_code error;
  const auto is_file = [&](const char* name) { return fs::is_regular_file(folder / name, error); };
  if (!fs::is_directory(folder, error))
    throw SetupError(fmt::format(
        "{}: this folder does not exist; give the folder of a LoRA adapter", folder.string()));
  const bool peft = is_file("adapter_model.safetensors");
  const bool mlx = is_file("adapters.safetensors");
  if (peft && mlx)
    throw SetupError(
        fmt::format("{}: has both adapter_model.safetensors (PEFT) and "
                    "adapters.safetensors (mlx-lm); remove one",
                    folder.string()));
  if (!peft && !mlx)
    throw SetupError(fmt::format(
        "{}: has neither adapter_model.safetensors (PEFT) nor adapters.safetensors (mlx-lm){}",
        folder.string(),
        is_file("adapter_model.bin") ? "; convert adapter_model.bin to safetensors" : ""));
  return {peft ? AdapterFormat::kPeft : AdapterFormat::kMlx, folder / "adapter_config.json",
          folder / (peft ? "adapter_model.safetensors" : "adapters.safetensors")};
}

// A copy, so that the digest is that of the numbers read, even if the file changes meanwhile.
std::vector<std::byte> read_whole(const fs::path& file, uint64_t limit) {
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  if (error) throw SetupError(fmt::format("{}: {}", file.string(), error.message()));
  if (size > limit)
    throw SetupError(
        fmt::format("{}: has {}; an adapter of this model has at most {} with this --max-lora-rank",
                    file.string(), format_bytes(size), format_bytes(limit)));
  std::vector<std::byte> bytes(size);
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    throw SetupError(file.string() + ": cannot be read");
  return bytes;
}

struct Halves {
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
};

class LoraReader {
 public:
  LoraReader(const DecoderPlan& plan, const AdapterTargets& targets, const LoraLimits& limits,
             AdapterConfig config)
      : plan_(plan), targets_(targets), limits_(limits), config_(std::move(config)) {}

  std::vector<LoraModule> read(std::span<const TensorView> tensors) {
    for (const TensorView& tensor : tensors) sort_in(tensor);
    if (halves_.empty()) throw SetupError("has no tensors");
    std::vector<LoraModule> modules;
    std::set<int> taken;
    for (const auto& [name, halves] : halves_) {
      modules.push_back(read_module(name, halves));
      for (const auto& part : targets_.modules.at(name).parts) {
        if (!taken.insert(part.projection).second)
          throw SetupError(fmt::format("module {}: another module changes the same projection",
                                       in_quotes(name)));
      }
    }
    return modules;
  }

 private:
  [[noreturn]] static void refuse(const std::string& tensor, const std::string& why) {
    throw SetupError(fmt::format("tensor {}: {}", in_quotes(tensor), why));
  }

  // Finds the module and the half that a tensor is.
  void sort_in(const TensorView& tensor) {
    const bool peft = config_.format == AdapterFormat::kPeft;
    std::string name = tensor.name;
    if (name.find("lora_magnitude_vector") != std::string::npos || (!peft && name.ends_with(".m")))
      refuse(name, "belongs to DoRA, which is not supported; merge the adapter into the model");
    if (name.find("lora_embedding_") != std::string::npos ||
        name.find("embed_tokens.") != std::string::npos ||
        name.find("lm_head.") != std::string::npos)
      refuse(name, "LoRA on embeddings and the output matrix is not supported");
    constexpr std::string_view kRoot = "base_model.model.";
    if (peft && name.starts_with(kRoot)) name.erase(0, kRoot.size());
    const std::string_view end_a = peft ? ".lora_A.weight" : ".lora_a";
    const std::string_view end_b = peft ? ".lora_B.weight" : ".lora_b";
    const bool is_a = name.ends_with(end_a);
    if (!is_a && !name.ends_with(end_b))
      refuse(tensor.name, "is not known and may change the output");
    const std::string full = name.substr(0, name.size() - end_a.size());
    const std::string module = targets_.local_name(full);
    if (module.empty()) refuse(tensor.name, "is not in a layer of this model");
    if (!targets_.modules.contains(module)) refuse(tensor.name, why_not_adapted(plan_, module));
    config_.check_module(full, module, static_cast<int>(plan_.layers.size()));
    const TensorView*& place = is_a ? halves_[module].a : halves_[module].b;
    if (place != nullptr) refuse(tensor.name, "is there twice");
    place = &tensor;
  }

  LoraModule read_module(const std::string& name, const Halves& halves) const {
    if (halves.a == nullptr || halves.b == nullptr)
      throw SetupError(fmt::format("module {}: has only one of its two matrices", in_quotes(name)));
    const AdapterModule& module = targets_.modules.at(name);
    const bool transposed = config_.format == AdapterFormat::kMlx;
    LoraModule lora{.name = name,
                    .rank = config_.rank_of(name),
                    .scale = config_.scale_of(name),
                    .is_transposed = transposed};
    if (lora.rank > limits_.max_rank)
      throw SetupError(fmt::format("module {}: has rank {}; start with --max-lora-rank {}",
                                   in_quotes(name), lora.rank, lora.rank));
    const int64_t rank = lora.rank;
    using Shape = std::vector<int64_t>;
    expect_shape(*halves.a, transposed ? Shape{module.inputs, rank} : Shape{rank, module.inputs});
    expect_shape(*halves.b, transposed ? Shape{rank, module.outputs} : Shape{module.outputs, rank});
    lora.a = convert(*halves.a);
    lora.b = convert(*halves.b);
    return lora;
  }

  std::vector<std::byte> convert(const TensorView& tensor) const {
    const DType stored = expect_float(tensor);
    const size_t count = tensor.bytes.size() / size_of(stored);
    std::vector<std::byte> out(count * size_of(limits_.dtype));
    constexpr size_t kAtOnce = 4096;
    std::vector<float> values(kAtOnce);
    for (size_t first = 0; first < count; first += kAtOnce) {
      const auto some = static_cast<int64_t>(std::min(kAtOnce, count - first));
      void* to = out.data() + first * size_of(limits_.dtype);
      cpu::load_floats(tensor.bytes.data() + first * size_of(stored), stored, some, values.data());
      cpu::store_floats(values.data(), some, limits_.dtype, to);
      cpu::load_floats(to, limits_.dtype, some, values.data());
      const auto end = values.begin() + some;
      if (!std::all_of(values.begin(), end, [](float value) { return std::isfinite(value); }))
        refuse(tensor.name, fmt::format("has numbers that are not finite in {}, the type of the "
                                        "model",
                                        octavo::name_of(limits_.dtype)));
    }
    return out;
  }

  const DecoderPlan& plan_;
  const AdapterTargets& targets_;
  const LoraLimits& limits_;
  AdapterConfig config_;
  std::map<std::string, Halves> halves_;
};

Sha256Digest digest_of_files(const std::string& config, std::span<const std::byte> tensors) {
  const auto bytes_of = [](const auto& text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  const Sha256Digest one = sha256(bytes_of(config));
  const Sha256Digest two = sha256(bytes_of(tensors));
  std::vector<uint8_t> both(one.begin(), one.end());
  both.insert(both.end(), two.begin(), two.end());
  return sha256(both);
}

}  // namespace

uint64_t largest_lora_file(const AdapterTargets& targets, int max_rank) {
  uint64_t numbers = 0;
  for (const AdaptedProjection& projection : targets.projections)
    numbers += static_cast<uint64_t>(projection.inputs) + static_cast<uint64_t>(projection.outputs);
  return numbers * static_cast<uint64_t>(max_rank) * sizeof(float) + kLargestHeader;
}

LoraWeights read_lora(const fs::path& folder, const DecoderPlan& plan,
                      const AdapterTargets& targets, const LoraLimits& limits) {
  const AdapterFiles files = find_adapter_files(folder);
  const std::string text = read_text_file(files.config, kLargestConfig);
  const AdapterConfig config = read_adapter_config(text, files.config, files.format);
  const std::vector<std::byte> bytes =
      read_whole(files.tensors, largest_lora_file(targets, limits.max_rank));
  const Safetensors tensors = parse_safetensors(bytes, files.tensors.string());
  LoraWeights weights{.dtype = limits.dtype};
  try {
    weights.modules = LoraReader(plan, targets, limits, config).read(tensors.tensors);
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("{}: {}", files.tensors.string(), error.what()));
  }
  weights.digest = digest_of_files(text, bytes);
  return weights;
}

}  // namespace octavo
