#include "models/quantized/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "models/config.h"
#include "models/decoder_model.h"
#include "models/model_description.h"
#include "models/weight_view.h"

namespace octavo {
namespace {

constexpr std::string_view kWeight = ".weight";

// Matrices that mlx-lm keeps at 8 bits in groups of 64, by the end of their module's name.
struct EightBits {
  std::string_view family;
  std::string_view module;
};
constexpr std::array kEightBits = {
    EightBits{"granite", "self_attn.o_proj"},
    EightBits{"granite", "mlp.down_proj"},
    EightBits{"granite", "lm_head"},
    EightBits{"qwen3_moe", "mlp.gate"},
};

bool stays_at_eight_bits(std::string_view family, std::string_view module) {
  return std::ranges::any_of(kEightBits, [&](const EightBits& each) {
    return each.family == family && module.ends_with(each.module);
  });
}

// Families whose experts mlx-lm stacks without changing them otherwise.
constexpr std::array<std::string_view, 3> kExpertFamilies = {"mixtral", "qwen2_moe", "qwen3_moe"};

void expect_plain_decoder(const Checkpoint& checkpoint, const DecoderPlan& plan) {
  const bool may_have_experts =
      std::ranges::find(kExpertFamilies, plan.family) != kExpertFamilies.end();
  bool plain = plan.prefix == "model" && plan.head_name == "lm_head" && !plan.per_layer_input &&
               plan.renames.empty();
  for (const LayerPlan& layer : plan.layers) {
    plain = plain && std::holds_alternative<AttentionPlan>(layer.mixer) &&
            (std::holds_alternative<MlpPlan>(layer.ffn) ||
             (may_have_experts && std::holds_alternative<MoePlan>(layer.ffn)));
  }
  if (!plain)
    throw SetupError(
        fmt::format("{}: octavo quantize does not convert {} models of this form; use "
                    "mlx_lm.convert",
                    checkpoint.path().string(), plan.family));
}

// "model.layers.0.mlp.experts.7.w1.weight" is matrix 7 of
// "model.layers.0.mlp.switch_mlp.gate_proj.weight".
struct ExpertMatrix {
  std::string stack;
  size_t expert;
};

std::optional<ExpertMatrix> expert_matrix(const std::string& name) {
  constexpr std::string_view kExperts = ".experts.";
  constexpr size_t kMostDigits = 5;
  const size_t at = name.find(kExperts);
  if (at == std::string::npos || !name.ends_with(kWeight)) return std::nullopt;
  const size_t number = at + kExperts.size();
  const size_t end = name.find('.', number);
  const std::string digits = name.substr(number, end - number);
  if (digits.empty() || digits.size() > kMostDigits ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  std::string leaf = name.substr(end + 1);
  if (leaf == "w1.weight") leaf = "gate_proj.weight";
  if (leaf == "w2.weight") leaf = "down_proj.weight";
  if (leaf == "w3.weight") leaf = "up_proj.weight";
  return ExpertMatrix{name.substr(0, at) + ".switch_mlp." + leaf, std::stoul(digits)};
}

void expect_dense(const Checkpoint& checkpoint, const Config& config) {
  const auto refuse = [&](const char* what) {
    throw SetupError(
        fmt::format("{}: {}; octavo quantize converts safetensors in float32, float16 "
                    "or bfloat16",
                    checkpoint.path().string(), what));
  };
  if (checkpoint.gguf() != nullptr) refuse("this is a GGUF file");
  for (const char* key : {"quantization", "quantization_config", "compression_config"})
    if (config.has(key)) refuse("the model is already quantised");
}

// The type that mlx-lm casts to: the config's, as it reads it, or none.
std::optional<TensorType> cast_type(const Config& config) {
  const std::string type = config.text_or("torch_dtype", "");
  if (type == "float32") return TensorType::F32;
  if (type == "float16") return TensorType::F16;
  if (type == "bfloat16") return TensorType::BF16;
  return std::nullopt;
}

// The tensors that loading would read; true for matrices.
std::map<std::string, bool> tensors_in_use(const Checkpoint& checkpoint,
                                           const ModelDescription& model) {
  WeightSource source(checkpoint, nullptr, WeightUse::kCheck);
  DecoderModel(model.plan, model.dtype, source);
  if (!source.problems().empty()) throw SetupError(source.problems().front());
  return source.tensors_in_use();
}

}  // namespace

std::string TensorConversion::module() const {
  return name.substr(0, name.size() - kWeight.size());
}

int64_t TensorConversion::cols() const {
  const std::vector<int64_t>& shape = sources.front()->shape;
  return shape.empty() ? 1 : shape.back();
}

std::vector<SafetensorsTensor> TensorConversion::outputs() const {
  std::vector<int64_t> shape = sources.front()->shape;
  if (is_stack) shape.insert(shape.begin(), static_cast<int64_t>(sources.size()));
  if (bits == 0) return {{name, type, shape}};
  std::vector<int64_t> codes = shape, groups = shape;
  codes.back() = cols() * bits / 32;
  groups.back() = cols() / group_size;
  return {{name, TensorType::U32, codes},
          {module() + ".scales", type, groups},
          {module() + ".biases", type, groups}};
}

namespace {

class ConversionPlanner {
 public:
  ConversionPlanner(const Config& config, std::string family, const QuantizeOptions& options)
      : cast_(cast_type(config)), family_(std::move(family)), options_(options) {}

  void add(const TensorView& tensor, bool is_matrix) {
    expect_float(tensor);
    const auto expert = expert_matrix(tensor.name);
    if (!expert) {
      conversions_.push_back(conversion(tensor.name, tensor, is_matrix));
      return;
    }
    const auto [found, is_new] = stacks_.emplace(expert->stack, conversions_.size());
    if (is_new) conversions_.push_back(conversion(expert->stack, tensor, is_matrix));
    TensorConversion& stack = conversions_[found->second];
    stack.is_stack = true;
    if (stack.sources.size() <= expert->expert) stack.sources.resize(expert->expert + 1);
    stack.sources[expert->expert] = &tensor;
  }

  std::vector<TensorConversion> take() {
    for (const TensorConversion& each : conversions_) {
      if (std::ranges::any_of(each.sources, [](const TensorView* view) { return view == nullptr; }))
        throw SetupError(fmt::format("{}: an expert is missing", each.name));
    }
    return std::move(conversions_);
  }

 private:
  TensorConversion conversion(const std::string& name, const TensorView& tensor,
                              bool is_matrix) const {
    TensorConversion made{.name = name, .sources = {&tensor}, .type = cast_.value_or(tensor.type)};
    if (!is_matrix || !name.ends_with(kWeight) || made.cols() % options_.group_size != 0)
      return made;
    made.differs = stays_at_eight_bits(family_, made.module());
    made.bits = made.differs ? 8 : options_.bits;
    made.group_size = made.differs ? 64 : options_.group_size;
    return made;
  }

  std::optional<TensorType> cast_;
  std::string family_;
  QuantizeOptions options_;
  std::vector<TensorConversion> conversions_;
  std::map<std::string, size_t> stacks_;  // positions in conversions_
};

}  // namespace

std::vector<TensorConversion> plan_conversions(const Checkpoint& checkpoint,
                                               const QuantizeOptions& options) {
  const Config config = read_config(checkpoint);
  expect_dense(checkpoint, config);
  const ModelDescription model = describe_model(checkpoint, std::nullopt);
  expect_plain_decoder(checkpoint, model.plan);
  const std::map<std::string, bool> in_use = tensors_in_use(checkpoint, model);
  ConversionPlanner planner(config, model.plan.family, options);
  for (const TensorView& tensor : checkpoint.tensors()) {
    const auto found = in_use.find(tensor.name);
    if (found != in_use.end()) planner.add(tensor, found->second);
  }
  return planner.take();
}

}  // namespace octavo
