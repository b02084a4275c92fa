#include "hub/file_choice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/gguf_file_name.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<ModelFile> files(const std::vector<std::string>& names) {
  std::vector<ModelFile> result;
  for (const std::string& name : names) result.push_back({.path = name, .size = 10});
  return result;
}

std::vector<std::string> paths(const FileChoice& choice) {
  std::vector<std::string> result;
  for (const ModelFile& file : choice.files) result.push_back(file.path);
  return result;
}

std::string refusal(const std::vector<ModelFile>& files, const std::string& variant) {
  try {
    choose_files(files, variant, "Org/Name");
  } catch (const SetupError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(FileChoice, TakesOnlyWhatASafetensorsModelNeeds) {
  const FileChoice choice = choose_files(
      files({".gitattributes", "README.md", "config.json", "consolidated.safetensors",
             "generation_config.json", "preprocessor_config.json", "processor_config.json",
             "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
             "model.safetensors.index.json", "onnx/model.onnx", "original/consolidated.00.pth",
             "pytorch_model.bin", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
             "1_Pooling/config.json"}),
      "", "Org/Name");
  EXPECT_THAT(paths(choice),
              ElementsAre("config.json", "generation_config.json", "preprocessor_config.json",
                          "processor_config.json", "model.safetensors.index.json", "tokenizer.json",
                          "tokenizer_config.json", "chat_template.jinja", "1_Pooling/config.json",
                          "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
  EXPECT_EQ(choice.opened, "");
  EXPECT_EQ(choice.weight_bytes, 20u);
  EXPECT_TRUE(choice.is_complete);
}

TEST(FileChoice, OneShardOfTwoOrNoConfigIsNotComplete) {
  EXPECT_FALSE(choose_files(files({"config.json", "model-00001-of-00002.safetensors"}), "", "x")
                   .is_complete);
  EXPECT_FALSE(choose_files(files({"model.safetensors"}), "", "x").is_complete);
  EXPECT_FALSE(choose_files(files({"m-Q8_0-00002-of-00002.gguf"}), "", "x").is_complete);
}

TEST(FileChoice, TakesOneQuantisationWithAllItsPieces) {
  const auto repo =
      files({"README.md", "m-F16.gguf", "m-IQ2_XS.gguf", "m-Q4_K_M-00001-of-00002.gguf",
             "m-Q4_K_M-00002-of-00002.gguf", "m-Q8_0.gguf", "mmproj-m-f16.gguf"});
  EXPECT_THAT(paths(choose_files(repo, "", "x")),
              ElementsAre("m-Q4_K_M-00001-of-00002.gguf", "m-Q4_K_M-00002-of-00002.gguf"));
  EXPECT_EQ(choose_files(repo, "", "x").opened, "m-Q4_K_M-00001-of-00002.gguf");
  EXPECT_THAT(paths(choose_files(repo, "q8_0", "x")), ElementsAre("m-Q8_0.gguf"));
  EXPECT_THAT(paths(choose_files(repo, "m-F16.gguf", "x")), ElementsAre("m-F16.gguf"));
}

TEST(FileChoice, DoesNotTakeWhatTheLoaderRefuses) {
  for (const char* type : {"IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0", "Q1_0", "Q8_K", "NVFP4"}) {
    const std::string refused = fmt::format("m-{}.gguf", type);
    EXPECT_THAT(refusal(files({refused}), ""), HasSubstr(fmt::format("cannot load {}", type)));
    EXPECT_THAT(refusal(files({refused, "m-F16.gguf"}), type), HasSubstr("cannot load"));
    EXPECT_THAT(paths(choose_files(files({refused, "m-F16.gguf"}), "", "x")),
                ElementsAre("m-F16.gguf"));
  }
}

TEST(FileChoice, FewerThanFourBitsAreTakenOnRequestOrIfThereIsNothingElse) {
  for (const char* type : {"Q2_K", "Q3_K_M", "Q3_K_XL", "IQ3_XXS", "IQ2_M"}) {
    const std::string small = fmt::format("m-{}.gguf", type);
    EXPECT_THAT(paths(choose_files(files({small}), "", "x")), ElementsAre(small));
    EXPECT_THAT(paths(choose_files(files({small, "m-F16.gguf"}), type, "x")), ElementsAre(small));
    EXPECT_THAT(paths(choose_files(files({small, "m-F16.gguf"}), "", "x")),
                ElementsAre("m-F16.gguf"));
  }
  EXPECT_THAT(paths(choose_files(files({"m-F16.gguf", "m-mxfp4.gguf"}), "", "x")),
              ElementsAre("m-mxfp4.gguf"));
}

TEST(FileChoice, SaysWhatThereIsWhenNothingFits) {
  const auto repo = files({"m-IQ1_S.gguf", "m-Q8_0.gguf"});
  EXPECT_THAT(refusal(repo, "Q3_K_M"), HasSubstr("there are IQ1_S, Q8_0"));
  EXPECT_THAT(refusal(repo, "IQ1_S"), HasSubstr("cannot load IQ1_S weights, only F32, F16"));
  EXPECT_THAT(refusal(files({"config.json", "model.safetensors"}), "Q8_0"),
              HasSubstr("no GGUF files"));
  EXPECT_THAT(refusal(files({"pytorch_model.bin"}), ""), HasSubstr("PyTorch"));
}

TEST(GgufFileName, NamesItsQuantisation) {
  EXPECT_EQ(quantization_of("Qwen3-0.6B-Q8_0.gguf"), "Q8_0");
  EXPECT_EQ(quantization_of("sub/smollm2-1.7b-instruct-q4_k_m.gguf"), "Q4_K_M");
  EXPECT_EQ(quantization_of("model.Q5_K_S.gguf"), "Q5_K_S");
  EXPECT_EQ(quantization_of("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(quantization_of("Qwen3-30B-A3B-MXFP4_MOE.gguf"), "MXFP4");
  EXPECT_EQ(quantization_of("m-UD-IQ1_S.gguf"), "IQ1_S");
  EXPECT_EQ(quantization_of("Qwen3-4B.gguf"), "");
  EXPECT_LT(quantization_rank("IQ1_S"), 0);
  EXPECT_LT(quantization_rank("Q4_K_M"), quantization_rank("F16"));
}

}  // namespace
}  // namespace octavo
