#include "models/quantized/quantization_scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

namespace octavo {
namespace {

constexpr const char* kOtherVersion = "use another version of the model, or the unquantised one";

[[noreturn]] void refuse_option(const Config& section, const std::string& key,
                                std::string_view supported) {
  section.fail(key, fmt::format("is {}; supported is {}: {}", section.json().at(key).dump(),
                                supported, kOtherVersion));
}

std::string groups_text(int group_size) {
  return group_size > 0 ? fmt::format("in groups of {}", group_size) : "with one group per output";
}

// -1 stands for one group.
int group_size_of(const Config& section) {
  return std::max(section.integer_or("group_size", 128, -1, 1 << 20), 0);
}

QuantizationScheme read_awq(const Config& section) {
  QuantizationScheme scheme{.method = QuantMethod::kAwq, .bits = section.integer_or("bits", 4)};
  if (scheme.bits != 4) refuse_option(section, "bits", "4");
  std::string version = section.text_or("version", "gemm");
  std::ranges::transform(version, version.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (version != "gemm") refuse_option(section, "version", "gemm");
  if (section.text_or("backend", "autoawq") == "llm-awq")
    refuse_option(section, "backend", "autoawq");
  if (!section.boolean_or("zero_point", true)) refuse_option(section, "zero_point", "true");
  scheme.group_size = group_size_of(section);
  scheme.description = fmt::format("awq 4-bit {}", groups_text(scheme.group_size));
  return scheme;
}

QuantizationScheme read_gptq(const Config& section) {
  QuantizationScheme scheme{.method = QuantMethod::kGptq, .bits = section.integer_or("bits", 4)};
  constexpr std::array kBits = {2, 3, 4, 8};
  if (std::ranges::find(kBits, scheme.bits) == kBits.end())
    refuse_option(section, "bits", "2, 3, 4 or 8");
  const char* key = section.has("checkpoint_format") ? "checkpoint_format" : "format";
  const std::string format = section.text_or(key, "gptq");
  if (format != "gptq" && format != "gptq_v2") refuse_option(section, key, "gptq or gptq_v2");
  scheme.zero_offset = format == "gptq" ? 1 : 0;
  if (section.boolean_or("is_marlin_format", false))
    refuse_option(section, "is_marlin_format", "false");
  for (const char* changes_weights : {"adapter", "rotation"}) {
    if (section.has(changes_weights)) refuse_option(section, changes_weights, "null");
  }
  scheme.symmetric = section.boolean_or("sym", false);
  scheme.group_size = group_size_of(section);
  scheme.description = fmt::format("gptq {}-bit {}", scheme.bits, groups_text(scheme.group_size));
  return scheme;
}

// What the groups of a compressed-tensors config say about the weights of their modules.
struct WeightGroups {
  int symmetric = 0;  // groups of integers
  int asymmetric = 0;
  int floats = 0;
  bool quantizes_inputs = false;
  std::string numbers;  // of the first group: "4-bit in groups of 128"
};

void read_blocks(const Config& weights, QuantizationScheme& scheme) {
  const std::vector<int> block = weights.integers("block_structure");
  if (block.empty()) return;
  if (block.size() != 2 || block[0] < 1 || block[1] < 1)
    refuse_option(weights, "block_structure", "a list of two sizes");
  scheme.block_rows = block[0];
  scheme.block_cols = block[1];
}

void read_weight_group(const Config& weights, WeightGroups& groups, QuantizationScheme& scheme) {
  const std::string type = weights.text_or("type", "int");
  const int bits = weights.integer_or("num_bits", 8);
  if (type != "int" && type != "float") refuse_option(weights, "type", "int or float");
  if (bits != 8 && (bits != 4 || type == "float"))
    refuse_option(weights, "num_bits", type == "int" ? "4 or 8" : "8");
  if (weights.boolean_or("dynamic", false)) refuse_option(weights, "dynamic", "false");
  constexpr std::array<std::string_view, 4> kStrategies = {"group", "channel", "tensor", "block"};
  const std::string strategy = weights.text_or("strategy", "tensor");
  if (std::ranges::find(kStrategies, strategy) == kStrategies.end())
    refuse_option(weights, "strategy", "group, channel, tensor or block");
  const bool symmetric = weights.boolean_or("symmetric", true);
  if (type == "float" && !symmetric) refuse_option(weights, "symmetric", "true for floats");
  ++(type == "float" ? groups.floats : symmetric ? groups.symmetric : groups.asymmetric);
  read_blocks(weights, scheme);
  if (!groups.numbers.empty()) return;
  groups.numbers =
      type == "float" ? fmt::format("fp8 with one scale per {}", strategy)
      : strategy == "group"
          ? fmt::format("{}-bit in groups of {}", bits, weights.integer_or("group_size", 128, -1))
          : fmt::format("{}-bit with one scale per {}", bits, strategy);
}

void check_compressed_format(const Config& section) {
  constexpr std::array<std::string_view, 5> kFormats = {
      "pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mixed-precision"};
  if (!section.has("format")) return;
  if (std::ranges::find(kFormats, section.text("format")) == kFormats.end())
    refuse_option(section, "format",
                  "pack-quantized, int-quantized, float-quantized or naive-quantized");
}

// Sparse weights and rotated ones have other tensors, or the same with another meaning.
void check_compressed_options(const Config& section) {
  check_compressed_format(section);
  if (const auto sparsity = section.object("sparsity_config")) {
    if (sparsity->text_or("format", "dense") != "dense")
      refuse_option(*sparsity, "format", "dense");
  }
  if (const auto transform = section.object("transform_config")) {
    if (!transform->json().empty()) refuse_option(section, "transform_config", "none");
  }
}

QuantizationScheme read_compressed_tensors(const Config& section) {
  QuantizationScheme scheme{.method = QuantMethod::kCompressedTensors};
  check_compressed_options(section);
  const auto all = section.object("config_groups");
  if (!all) section.fail("config_groups", "is missing");
  WeightGroups groups;
  for (const auto& entry : all->json().items()) {
    const auto group = all->object(entry.key());
    if (!group) continue;
    check_compressed_format(*group);
    if (const auto weights = group->object("weights")) read_weight_group(*weights, groups, scheme);
    groups.quantizes_inputs = groups.quantizes_inputs || group->has("input_activations");
  }
  if (groups.symmetric > 0 && groups.asymmetric > 0)
    section.fail("config_groups",
                 fmt::format("mix symmetric and asymmetric weights, which is not supported: {}",
                             kOtherVersion));
  scheme.symmetric = groups.asymmetric == 0;
  scheme.description = fmt::format("compressed-tensors {}{}", groups.numbers,
                                   groups.quantizes_inputs ? ", activations not quantised" : "");
  return scheme;
}

QuantizationScheme read_fp8(const Config& section) {
  QuantizationScheme scheme{.method = QuantMethod::kFp8};
  const std::string format = section.text_or("fmt", "e4m3");
  if (format != "e4m3" && format != "float8_e4m3fn") refuse_option(section, "fmt", "e4m3");
  if (section.text_or("expert_dtype", "fp8") != "fp8")
    refuse_option(section, "expert_dtype", "fp8");
  const std::vector<int> block = section.integers("weight_block_size");
  if (!block.empty() && (block.size() != 2 || block[0] < 1 || block[1] < 1))
    refuse_option(section, "weight_block_size", "a list of two sizes");
  if (!block.empty()) {
    scheme.block_rows = block[0];
    scheme.block_cols = block[1];
  }
  const std::string scales = section.text_or("scale_fmt", "float");
  if (scales != "float" && scales != "ue8m0") refuse_option(section, "scale_fmt", "float or ue8m0");
  scheme.powers_of_two = scales == "ue8m0";
  scheme.description =
      block.empty() ? "fp8" : fmt::format("fp8 in blocks of {} x {}", block[0], block[1]);
  return scheme;
}

}  // namespace

QuantizationScheme read_quantization(const Config& config) {
  if (config.has("quantization")) return {};
  const char* key =
      config.has("quantization_config") ? "quantization_config" : "compression_config";
  const auto section = config.object(key);
  if (!section) return {};
  if (!section->has("quant_method")) {
    if (section->has("config_groups")) return read_compressed_tensors(*section);
    return {};  // MLX writes its own section under this name, too
  }
  const std::string method = section->text("quant_method");
  if (method == "awq") return read_awq(*section);
  if (method == "gptq") return read_gptq(*section);
  if (method == "compressed-tensors") return read_compressed_tensors(*section);
  if (method == "fp8") return read_fp8(*section);
  if (method == "mxfp4") return {};
  refuse_option(*section, "quant_method", "awq, gptq, compressed-tensors, fp8 or mxfp4");
}

}  // namespace octavo
