#include "kv_events/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo::kv_events {
namespace {

TEST(KvEventsConfig, HasVllmsKeysAndDefaults) {
  const Config config = parse_config(R"({"enable_kv_cache_events": true})");
  EXPECT_TRUE(config.on());
  const auto sources = nlohmann::json::parse(config.sources());
  EXPECT_EQ(sources["0"],
            nlohmann::json::parse(R"({"enable_kv_cache_events": true, "publisher": "zmq",
                "endpoint": "tcp://127.0.0.1:5557", "replay_endpoint": null, "buffer_steps": 10000,
                "hwm": 100000, "max_queue_size": 100000, "topic": "", "event_form": "map"})"));
}

TEST(KvEventsConfig, IsOffUnlessEnabled) {
  for (const char* json : {"{}", R"({"endpoint": "tcp://*:5557"})",
                           R"({"enable_kv_cache_events": true, "publisher": "null"})"}) {
    EXPECT_FALSE(parse_config(json).on());
    EXPECT_EQ(parse_config(json).sources(), "{}");
  }
}

TEST(KvEventsConfig, RefusesWhatItDoesNotKnow) {
  for (const char* json :
       {"", "[]", R"({"enable": true})", R"({"publisher": "kafka"})", R"({"hwm": 0})",
        R"({"hwm": "many"})", R"({"endpoint": "5557"})", R"({"endpoint": "inproc://x"})",
        R"({"enable_kv_cache_events": 1})", R"({"event_form": "csv"})"}) {
    EXPECT_THROW(parse_config(json), SetupError) << json;
  }
}

}  // namespace
}  // namespace octavo::kv_events
