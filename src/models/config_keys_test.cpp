#include "models/config_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "base/error.h"
#include "models/config_file.h"
#include "models/families/families.h"
#include "models/families/published_configs.h"
#include "models/transformers_defaults.h"

namespace octavo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

// Repeats a short layer_types until every layer has an entry.
void repeat_layer_types(Json& config) {
  if (config.contains("text_config")) return repeat_layer_types(config["text_config"]);
  if (!config.contains("layer_types")) return;
  const Json pattern = config["layer_types"];
  Json types = Json::array();
  const auto layers = config["num_hidden_layers"].get<size_t>();
  for (size_t i = 0; i < layers; ++i) types.push_back(pattern[i % pattern.size()]);
  config["layer_types"] = types;
}

Json published(std::string_view name) {
  for (const auto& config : kPublishedConfigs) {
    if (name != config.name) continue;
    Json json = Json::parse(config.json);
    repeat_layer_types(json);
    return json;
  }
  throw std::logic_error("no such config");
}

// Through a file, since that joins text_config to the rest.
std::vector<std::string> unknown_keys_of(const Json& json, UnknownKeys rule = UnknownKeys::kWarn) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + test->name() + ".json";
  std::ranges::replace(name, '/', '_');
  const auto path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path) << json;
  const Config config = read_config_file(path);
  plan_config_file(config, rule);
  return check_config_keys(config);
}

std::string refusal_of(const Json& json, UnknownKeys rule = UnknownKeys::kWarn) {
  try {
    unknown_keys_of(json, rule);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

Json changed(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

class PublishedConfigs : public testing::TestWithParam<PublishedConfig> {};

TEST_P(PublishedConfigs, AreAcceptedWithoutAWarning) {
  EXPECT_THAT(unknown_keys_of(published(GetParam().name)), IsEmpty()) << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(All, PublishedConfigs, testing::ValuesIn(kPublishedConfigs),
                         [](const auto& published_config) {
                           std::string name = published_config.param.name;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// The published configs and the text parts of the multimodal ones, by model_type.
std::map<std::string, Json> config_of_each_type() {
  std::map<std::string, Json> configs;
  for (const auto& each : kPublishedConfigs) {
    const Json json = published(each.name);
    configs.emplace(json["model_type"].get<std::string>(), json);
    if (!json.contains("text_config")) continue;
    const Json& text = json["text_config"];
    configs.emplace(text["model_type"].get<std::string>(), text);
  }
  return configs;
}

TEST(ConfigKeys, EveryFamilyRefusesAKeyThatItDoesNotReadByName) {
  const auto configs = config_of_each_type();
  for (const std::string& type : known_model_types()) {
    ASSERT_TRUE(configs.contains(type)) << type;
    EXPECT_EQ(refusal_of(configs.at(type)), "no error") << type;
    for (const Json& bad : {Json{{"is_causal", false}}, Json{{"is_encoder_decoder", true}}})
      EXPECT_THAT(refusal_of(changed(configs.at(type), bad)), HasSubstr(bad.begin().key())) << type;
    EXPECT_FALSE(transformers_defaults(type).empty()) << type;
  }
}

TEST(ConfigKeys, AKeyOfTheFamilyNamesItsValueAndTheDefault) {
  EXPECT_THAT(refusal_of(changed(published("gpt-oss-20b"), {{"swiglu_alpha", 1.5}})),
              AllOf(HasSubstr(R"("swiglu_alpha" is 1.5)"), HasSubstr("default 1.702"),
                    HasSubstr("use another checkpoint")));
  const std::vector<std::pair<const char*, Json>> changes = {
      {"SmolLM3-3B", {{"mlp_bias", true}}},
      {"Qwen1.5-MoE-A2.7B", {{"qkv_bias", false}}},
      {"gemma-2-2b-it", {{"use_bidirectional_attention", true}}},
      {"DeepSeek-V2-Lite", {{"mlp_bias", true}}},
      {"DeepSeek-R1", {{"partial_rotary_factor", 0.5}}},
      {"MiniCPM3-4B, with shortened factors", {{"mlp_bias", true}}},
  };
  for (const auto& [name, change] : changes)
    EXPECT_THAT(refusal_of(changed(published(name), change)), HasSubstr(change.begin().key()))
        << name;
}

TEST(ConfigKeys, ADefaultAndAnEmptyValueAreAccepted) {
  const Json gpt_oss = published("gpt-oss-20b");
  EXPECT_EQ(refusal_of(changed(gpt_oss, {{"swiglu_alpha", 1.702}})), "no error");
  EXPECT_EQ(refusal_of(changed(gpt_oss, {{"swiglu_alpha", nullptr}})), "no error");
  EXPECT_EQ(
      refusal_of(changed(published("Mixtral-8x7B-Instruct-v0.1"), {{"router_jitter_noise", 0.1}})),
      "no error");
}

TEST(ConfigKeys, AKeyUnknownToTransformersIsReportedAndRefusedIfStrict) {
  const Json json = changed(published("Qwen3-8B"), {{"new_gate", 2}, {"lm_head_bias", true}});
  EXPECT_THAT(unknown_keys_of(json), ElementsAre("lm_head_bias", "new_gate"));
  EXPECT_THAT(refusal_of(json, UnknownKeys::kRefuse),
              AllOf(HasSubstr("\"new_gate\""), HasSubstr("--strict-config")));
  EXPECT_EQ(refusal_of(published("Qwen3-8B"), UnknownKeys::kRefuse), "no error");
}

// A file is untrusted: its keys may be long, many, or not text.
TEST(ConfigKeys, MessagesAreShort) {
  Json json = published("Qwen3-8B");
  for (int i = 0; i < 1000; ++i) json[std::string(300, '\x07') + std::to_string(i)] = 1;
  const std::string message = refusal_of(json, UnknownKeys::kRefuse);
  EXPECT_LT(message.size(), 10000u);
  EXPECT_THAT(message, AllOf(HasSubstr("\\x07"), HasSubstr("and 992 more")));
}

TEST(ConfigKeys, AnotherNameOfAKeyMustHaveTheSameValue) {
  EXPECT_THAT(refusal_of(changed(published("gpt-oss-20b"), {{"experts_per_token", 2}})),
              AllOf(HasSubstr("experts_per_token"), HasSubstr("num_experts_per_tok")));
  Json moe = changed(published("Qwen3-30B-A3B"), {{"num_local_experts", 128}});
  EXPECT_EQ(refusal_of(moe), "no error");
  EXPECT_THAT(refusal_of(changed(moe, {{"num_local_experts", 64}})),
              HasSubstr("num_local_experts"));
  moe.erase("num_experts");  // as transformers 5 saves it
  moe["num_local_experts"] = 64;
  const DecoderPlan plan = plan_config_file(Config(moe, "config.json"), UnknownKeys::kRefuse);
  EXPECT_EQ(plan.layers[0].moe()->choice.experts, 64);
}

TEST(ConfigKeys, KeysInsideRopeParametersAreChecked) {
  Json json = published("Qwen3-8B saved by transformers 5");
  json["rope_parameters"]["new_factor"] = 2;
  json["rope_parameters"]["short_factor"] = {1.0};  // of another type, so without effect
  EXPECT_THAT(unknown_keys_of(json), ElementsAre("rope_parameters.new_factor"));
  json["rope_parameters"]["full_attention"] = {{"rope_theta", 10.0}};
  EXPECT_THAT(refusal_of(json), HasSubstr("rope_parameters.full_attention"));
  // transformers prefers rope_scaling, Octavo rope_parameters.
  EXPECT_THAT(refusal_of(changed(published("Qwen3-8B saved by transformers 5"),
                                 {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}}})),
              HasSubstr("rope_scaling"));
}

TEST(ConfigKeys, TheTextPartDecidesTheDefaults) {
  Json json = published("Ministral-3-8B");
  json["text_config"]["is_causal"] = false;
  EXPECT_THAT(refusal_of(json), HasSubstr("is_causal"));
}

DecoderPlan plan_without(const char* name, const char* key) {
  Json json = published(name);
  json.erase(key);
  return plan_config_file(Config(json, "config.json"), UnknownKeys::kWarn);
}

TEST(ConfigKeys, AbsentKeysHaveTheDefaultsOfTransformers) {
  EXPECT_EQ(plan_without("Mistral-7B-Instruct-v0.3", "sliding_window").layers[0].attention().window,
            4096);
  EXPECT_TRUE(plan_without("GLM-4-9B-0414", "attention_bias").layers[0].attention().qkv_bias);
  EXPECT_TRUE(plan_without("SmolLM3-3B", "tie_word_embeddings").tied_embeddings);
  EXPECT_FLOAT_EQ(plan_without("Phi-3-mini-4k-instruct", "rms_norm_eps").norm_eps, 1e-5f);
  const auto theta = [](const char* key) {
    return plan_without("Mixtral-8x7B-Instruct-v0.1", key).ropes[0].inverse_frequencies[1];
  };
  EXPECT_EQ(theta("rope_theta"), theta("use_cache"));
  EXPECT_THROW(plan_without("Llama-3.1-8B-Instruct", "hidden_size"), SetupError);
}

TEST(ReadKeys, AreSharedWithCopiesAndObjectsInside) {
  const Config config({{"a", 1}, {"b", {{"c", {{"d", 2}}}}}, {"e", 3}}, "config.json");
  EXPECT_FALSE(config.was_read("a"));
  config.with_defaults({{"f", 4}}).integer("a");
  EXPECT_TRUE(config.has("e"));
  config.object("b")->object("c")->integer("d");
  EXPECT_TRUE(config.was_read("a"));
  EXPECT_TRUE(config.was_read("b.c.d"));
  EXPECT_FALSE(config.was_read("d"));
  EXPECT_FALSE(config.was_read("e"));
  config.with_values({{"e", 5}}).disregard({"e"});
  EXPECT_TRUE(config.was_read("e"));
}

}  // namespace
}  // namespace octavo
