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
std::vector<std::byte> read_whole(const fs::path& file, uint64_t limit, LoraUse use) {
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  if (error) throw SetupError(fmt::format("{}: {}", file.string(), error.message()));
  if (size > limit)
    throw SetupError(fmt::format("{}: has {}; an adapter of this model has at most {}{}",
                                 file.string(), format_bytes(size), format_bytes(limit),
                                 use == LoraUse::kServe ? " with this --max-lora-rank" : ""));
  std::vector<std::byte> bytes(size);
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    throw SetupError(file.string() + ": cannot be read");
  return bytes;
}

struct ModuleTensors {
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
  const TensorView* magnitude = nullptr;
};

using PlaceOfTensor = const TensorView* ModuleTensors::*;

// The end of a tensor's name and what it stands for; null if it is not known.
std::pair<std::string_view, PlaceOfTensor> place_in_module(const std::string& name, bool peft) {
  using Places = std::vector<std::pair<std::string_view, PlaceOfTensor>>;
  static const Places kPeftEnds = {{".lora_A.weight", &ModuleTensors::a},
                                   {".lora_B.weight", &ModuleTensors::b},
                                   {".lora_embedding_A", &ModuleTensors::a},
                                   {".lora_embedding_B", &ModuleTensors::b},
                                   {".lora_magnitude_vector", &ModuleTensors::magnitude},
                                   {".lora_magnitude_vector.weight", &ModuleTensors::magnitude}};
  static const Places kMlxEnds = {{".lora_a", &ModuleTensors::a},
                                  {".lora_b", &ModuleTensors::b},
                                  {".m", &ModuleTensors::magnitude}};
  for (const auto& [end, place] : peft ? kPeftEnds : kMlxEnds)
    if (name.ends_with(end)) return {end, place};
  return {"", nullptr};
}

class LoraReader {
 public:
  LoraReader(const DecoderPlan& plan, const AdapterTargets& targets, const LoraLimits& limits,
             AdapterConfig config)
      : plan_(plan), targets_(targets), limits_(limits), config_(std::move(config)) {}

  std::vector<LoraModule> read(std::span<const TensorView> tensors) {
    for (const TensorView& tensor : tensors) sort_in(tensor);
    if (tensors_.empty()) throw SetupError("has no tensors");
    std::vector<LoraModule> modules;
    std::set<std::pair<int, int>> taken;  // projections and their experts
    for (const auto& [name, own] : tensors_) {
      modules.push_back(read_module(name, own));
      for (const auto& part : targets_.modules.at(name).parts) {
        if (!taken.insert({part.projection, part.expert}).second)
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

  // Finds the module of a tensor and its place there.
  void sort_in(const TensorView& tensor) {
    const bool peft = config_.format == AdapterFormat::kPeft;
    std::string name = tensor.name;
    if (name.ends_with(".base_layer.weight"))
      refuse(name,
             "is a copy of a matrix of the base model; save the adapter with "
             "save_embedding_layers=False");
    constexpr std::string_view kRoot = "base_model.model.";
    if (peft && name.starts_with(kRoot)) name.erase(0, kRoot.size());
    const auto [end, place_of] = place_in_module(name, peft);
    if (place_of == nullptr) refuse(tensor.name, "is not known and may change the output");
    if (place_of == &ModuleTensors::magnitude && !config_.dora)
      refuse(tensor.name,
             "belongs to DoRA, but the config does not say that this is a DoRA adapter");
    const std::string full = name.substr(0, name.size() - end.size());
    const std::string module = targets_.local_name(full);
    if (module.empty()) refuse(tensor.name, "is not in a layer of this model");
    if (!targets_.modules.contains(module))
      refuse(tensor.name, why_not_adapted(plan_, targets_, module, limits_.use));
    const bool is_table = targets_.modules.at(module).is_table;
    if (peft && is_table != (end.find("embedding") != std::string_view::npos))
      refuse(tensor.name, "is not known and may change the output");
    if (peft && targets_.modules.at(module).experts > 0)
      refuse(tensor.name, "is mlx-lm's name of all experts, which PEFT does not write");
    if (peft && is_table) check_table(tensor.name);
    config_.check_module(full, module, static_cast<int>(plan_.layers.size()));
    const TensorView*& place = tensors_[module].*place_of;
    if (place != nullptr) refuse(tensor.name, "is there twice");
    place = &tensor;
  }

  // PEFT's embeddings of models for which its versions, or its merged and its other form, differ.
  // Until it is merged, its adapter of tied embeddings changes the input only.
  void check_table(const std::string& tensor) const {
    if (plan_.tied_embeddings && limits_.use == LoraUse::kMerge)
      refuse(
          tensor,
          "the output matrix of this model is its embeddings, and PEFT changes both only when the "
          "adapter is merged; serve it with --enable-lora, which changes the input only, or merge "
          "it "
          "with PEFT, which changes both");
    if (plan_.embedding_scale != 1)
      refuse(tensor,
             "this model scales its embeddings, and versions of PEFT differ in whether they "
             "scale the adapter");
    if (config_.dora) refuse(tensor, "DoRA of embeddings is not supported in PEFT's form");
  }

  LoraModule read_module(const std::string& name, const ModuleTensors& own) const {
    if (own.a == nullptr || own.b == nullptr)
      throw SetupError(fmt::format("module {}: has only one of its two matrices", in_quotes(name)));
    if (config_.dora && own.magnitude == nullptr)
      throw SetupError(fmt::format("module {}: has no magnitude of DoRA", in_quotes(name)));
    const AdapterModule& module = targets_.modules.at(name);
    const bool transposed =
        module.experts == 0 && (config_.format == AdapterFormat::kMlx) != module.is_table;
    const TensorView& a = module.is_table ? *own.b : *own.a;
    const TensorView& b = module.is_table ? *own.a : *own.b;
    LoraModule lora{.name = name,
                    .rank = config_.rank_of(name),
                    .scale = config_.scale_of(name),
                    .is_transposed = transposed,
                    .changes_head = module.is_table && plan_.tied_embeddings &&
                                    config_.format == AdapterFormat::kMlx};
    if (lora.rank > limits_.max_rank)
      throw SetupError(fmt::format("module {}: has rank {}; {}", in_quotes(name), lora.rank,
                                   limits_.use == LoraUse::kServe
                                       ? fmt::format("start with --max-lora-rank {}", lora.rank)
                                       : fmt::format("at most {} is supported", limits_.max_rank)));
    const int64_t rank = lora.rank;
    using Shape = std::vector<int64_t>;
    const auto shape_of = [&](int64_t rows, int64_t cols) {
      Shape shape = transposed ? Shape{cols, rows} : Shape{rows, cols};
      if (module.experts > 0) shape.insert(shape.begin(), module.experts);
      return shape;
    };
    expect_shape(a, shape_of(rank, module.inputs));
    expect_shape(b, shape_of(module.outputs, rank));
    lora.a = convert(a);
    lora.b = convert(b);
    if (own.magnitude != nullptr) {
      expect_shape(*own.magnitude, {module.outputs});
      lora.magnitude = convert(*own.magnitude);
    }
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
  std::map<std::string, ModuleTensors> tensors_;
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
    numbers +=
        static_cast<uint64_t>(projection.experts) *
        (static_cast<uint64_t>(projection.inputs) + static_cast<uint64_t>(projection.outputs));
  // The magnitudes of DoRA are fewer than the numbers of one more rank.
  numbers *= static_cast<uint64_t>(max_rank) + 1;
  constexpr uint64_t kModuleHeader = 1024;  // its name and shape, for each of two matrices
  return numbers * sizeof(float) + kLargestHeader + targets.modules.size() * kModuleHeader;
}

LoraWeights read_lora(const fs::path& folder, const DecoderPlan& plan,
                      const AdapterTargets& targets, const LoraLimits& limits) {
  const AdapterFiles files = find_adapter_files(folder);
  const std::string text = read_text_file(files.config, kLargestConfig);
  const AdapterConfig config = read_adapter_config(text, files.config, files.format, limits.use);
  const std::vector<std::byte> bytes =
      read_whole(files.tensors, largest_lora_file(targets, limits.max_rank), limits.use);
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
