#include "capi/engine_settings.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo::capi {
namespace {

std::string setup_error_of(const char* options) {
  try {
    read_engine_settings("m", options);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(EngineSettings, HaveTheFlagsNames) {
  const EngineSettings settings = read_engine_settings(
      "m", R"({"max_model_len": 64, "kv_memory": "1GiB", "prefix_disk_size": 5, "runner": "pooling",
               "enable_prefix_caching": false, "thinking": "off", "served_model_name": "x",
               "speculative_config": {"method": "none"}, "dtype": null})");
  EXPECT_EQ(settings.model.max_model_len, 64);
  EXPECT_EQ(settings.model.kv_memory, "1GiB");
  EXPECT_EQ(settings.model.prefix_disk_size, "5");
  EXPECT_EQ(settings.model.speculative_config, R"({"method":"none"})");
  EXPECT_FALSE(settings.model.enable_prefix_caching);
  EXPECT_EQ(settings.model.dtype, "auto");
  EXPECT_EQ(settings.pooling.runner, "pooling");
  EXPECT_EQ(settings.serving.dialect.thinking, false);
  EXPECT_EQ(settings.serving.served_model_name, std::vector<std::string>{"x"});
}

TEST(EngineSettings, HostsOfImagesAreNames) {
  EXPECT_EQ(read_engine_settings("m", "{}").serving.media_fetcher, nullptr);
  EXPECT_EQ(read_engine_settings("m", R"({"allowed_media_domains": []})").serving.media_fetcher,
            nullptr);
  EXPECT_NE(read_engine_settings("m", R"({"allowed_media_domains": ["images.example"]})")
                .serving.media_fetcher,
            nullptr);
  EXPECT_EQ(setup_error_of(R"({"allowed_media_domains": 3})"),
            "allowed_media_domains: must be a host or a list of hosts");
  EXPECT_TRUE(setup_error_of(R"({"allowed_media_domains": "10.0.0.1"})")
                  .starts_with("--allowed-media-domains: "));
}

TEST(EngineSettings, UnknownOptionsAreNamed) {
  EXPECT_TRUE(setup_error_of(R"({"tensor_parallel": 2})")
                  .starts_with("tensor_parallel: is not a known option"));
  EXPECT_EQ(setup_error_of(R"({"max_model_len": 0})"), "max_model_len: must be at least 1");
  EXPECT_EQ(setup_error_of(R"({"max_num_seqs": "8"})"), "max_num_seqs: must be a whole number");
  EXPECT_EQ(setup_error_of(R"({"kv_cache_dtype": "fp8"})"),
            "kv_cache_dtype: must be one of auto, int8");
  EXPECT_TRUE(setup_error_of("[]").starts_with("options: "));
}

}  // namespace
}  // namespace octavo::capi
