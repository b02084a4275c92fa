// config.h - the options of KV events, with vLLM's names. No MLX.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::kv_events {

enum class Publisher : uint8_t { kNull, kZmq };

// How an event is written.
enum class EventForm : uint8_t {
  kMap,    // as vLLM has done since June 2026
  kArray,  // as vLLM did before, for indexers that need it
};

struct Config {
  bool enable_kv_cache_events = false;
  Publisher publisher = Publisher::kZmq;
  std::string endpoint = "tcp://127.0.0.1:5557";
  std::string replay_endpoint = {};  // empty: no replay
  int buffer_steps = 10'000;         // batches kept for replay
  int hwm = 100'000;                 // batches waiting for one subscriber; more are dropped
  int max_queue_size = 100'000;      // changes waiting to be sent; more are dropped
  std::string topic = {};
  EventForm event_form = EventForm::kMap;

  bool on() const { return enable_kv_cache_events && publisher == Publisher::kZmq; }
  // The answer of GET /kv_event_sources: the options by data parallel rank. {} if it is off.
  std::string sources() const;
};

// Parses the value of --kv-events-config. Throws SetupError.
Config parse_config(std::string_view json);

}  // namespace octavo::kv_events
