#include "models/quantized/quantization_scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/families/plan_of.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json model_with(const Json& section) {
  return {
      {"model_type", "llama"},         {"vocab_size", 128},        {"hidden_size", 64},
      {"num_hidden_layers", 1},        {"num_attention_heads", 4}, {"num_key_value_heads", 2},
      {"intermediate_size", 128},      {"rms_norm_eps", 1e-5},     {"max_position_embeddings", 256},
      {"quantization_config", section}};
}

QuantizationScheme scheme_of(const Json& section) {
  return plan_of(model_with(section)).quantization;
}

const Json kAwq = {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"version", "GEMM"}};
const Json kGptq = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}, {"sym", true}};
const Json kFp8 = {{"quant_method", "fp8"}, {"weight_block_size", {128, 64}}};

Json compressed(const Json& weights, const char* format = "pack-quantized") {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

const Json kInt4 = {{"num_bits", 4},
                    {"type", "int"},
                    {"strategy", "group"},
                    {"group_size", 128},
                    {"symmetric", true}};

Json changed(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

TEST(QuantizationScheme, IsReadFromTheConfig) {
  EXPECT_EQ(scheme_of(kAwq).description, "awq 4-bit in groups of 128");
  EXPECT_EQ(scheme_of(kGptq).group_size, 0);
  EXPECT_EQ(scheme_of(kGptq).zero_offset, 1);
  EXPECT_TRUE(scheme_of(kGptq).symmetric);
  EXPECT_EQ(scheme_of(changed(kGptq, {{"checkpoint_format", "gptq_v2"}})).zero_offset, 0);
  EXPECT_EQ(scheme_of(kFp8).block_cols, 64);
  EXPECT_TRUE(scheme_of(changed(kFp8, {{"scale_fmt", "ue8m0"}})).powers_of_two);
  EXPECT_EQ(scheme_of(compressed(kInt4)).description, "compressed-tensors 4-bit in groups of 128");
  EXPECT_FALSE(scheme_of(compressed(changed(kInt4, {{"symmetric", false}}))).symmetric);
}

TEST(QuantizationScheme, MlxAndMxfp4NeedNoScheme) {
  EXPECT_EQ(scheme_of({{"group_size", 64}, {"bits", 4}}).method, QuantMethod::kNone);
  EXPECT_EQ(scheme_of({{"quant_method", "mxfp4"}}).method, QuantMethod::kNone);
}

TEST(QuantizationScheme, WhatChangesValuesIsRefusedByName) {
  const auto expect_refused = [](const Json& section, const char* names, const char* supported) {
    const std::string error = plan_error_of(model_with(section));
    EXPECT_THAT(error, HasSubstr(names));
    EXPECT_THAT(error, HasSubstr(supported));
  };
  expect_refused({{"quant_method", "bitsandbytes"}}, "bitsandbytes", "awq, gptq");
  expect_refused(changed(kAwq, {{"version", "gemv"}}), "gemv", "gemm");
  expect_refused(changed(kAwq, {{"bits", 3}}), "bits", "4");
  expect_refused(changed(kAwq, {{"zero_point", false}}), "zero_point", "true");
  expect_refused(changed(kAwq, {{"backend", "llm-awq"}}), "llm-awq", "autoawq");
  expect_refused(changed(kGptq, {{"bits", 5}}), "bits", "2, 3, 4 or 8");
  expect_refused(changed(kGptq, {{"checkpoint_format", "marlin"}}), "marlin", "gptq or gptq_v2");
  expect_refused(changed(kGptq, {{"is_marlin_format", true}}), "is_marlin_format", "false");
  expect_refused(changed(kGptq, {{"rotation", "hadamard"}}), "rotation", "null");
  expect_refused(changed(kFp8, {{"fmt", "e5m2"}}), "e5m2", "e4m3");
  expect_refused(changed(kFp8, {{"weight_block_size", {128}}}), "weight_block_size", "two sizes");
  expect_refused(compressed(kInt4, "nvfp4-pack-quantized"), "nvfp4", "pack-quantized");
  expect_refused(compressed(changed(kInt4, {{"num_bits", 3}})), "num_bits", "4 or 8");
  expect_refused(compressed(changed(kInt4, {{"strategy", "tensor_group"}})), "tensor_group",
                 "channel");
  expect_refused(changed(compressed(kInt4), {{"transform_config", {{"config_groups", {}}}}}),
                 "transform_config", "none");
  expect_refused(
      changed(compressed(kInt4), {{"sparsity_config", {{"format", "sparse-24-bitmask"}}}}),
      "sparse-24-bitmask", "dense");
}

TEST(QuantizationScheme, AnyMutationIsReadOrRefused) {
  for (const Json& section : {kAwq, kGptq, kFp8, compressed(kInt4)}) {
    const int refused = test_files::mutate(section.dump(), [](const std::vector<std::byte>& bytes) {
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const Json json = Json::parse(text, nullptr, false);
      if (json.is_discarded()) throw SetupError("not JSON");
      read_quantization(Config({{"quantization_config", json}}, "config.json"));
    });
    EXPECT_GT(refused, 1000);
  }
}

}  // namespace
}  // namespace octavo
