#include "kv_events/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo::kv_events {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFlag = "--kv-events-config";
constexpr int kMost = 10'000'000;

[[noreturn]] void refuse(const std::string& key, const std::string& what) {
  throw SetupError(fmt::format("{}: {}: {}", kFlag, key, what));
}

bool truth(const std::string& key, const Json& value) {
  if (!value.is_boolean()) refuse(key, "must be true or false");
  return value.get<bool>();
}

int count(const std::string& key, const Json& value) {
  if (value.is_number_integer() && value.get<int64_t>() >= 1 && value.get<int64_t>() <= kMost)
    return value.get<int>();
  refuse(key, fmt::format("must be a number from 1 to {}", kMost));
}

std::string text(const std::string& key, const Json& value) {
  if (!value.is_string()) refuse(key, "must be a string");
  return value.get<std::string>();
}

// "inproc" reaches only this process.
std::string endpoint(const std::string& key, const Json& value) {
  std::string address = text(key, value);
  if (!address.starts_with("tcp://") && !address.starts_with("ipc://"))
    refuse(key,
           fmt::format(R"("{}" must begin with tcp:// or ipc://, like tcp://*:5557)", address));
  return address;
}

Publisher publisher(const std::string& key, const Json& value) {
  const std::string name = text(key, value);
  if (name == "zmq") return Publisher::kZmq;
  if (name == "null") return Publisher::kNull;
  refuse(key, fmt::format(R"("{}" is not supported; use "zmq" or "null")", name));
}

EventForm event_form(const std::string& key, const Json& value) {
  const std::string name = text(key, value);
  if (name == "map") return EventForm::kMap;
  if (name == "array") return EventForm::kArray;
  refuse(key, fmt::format(R"("{}" is not supported; use "map" or "array")", name));
}

void set(Config& config, const std::string& key, const Json& value) {
  if (key == "enable_kv_cache_events") {
    config.enable_kv_cache_events = truth(key, value);
  } else if (key == "publisher") {
    config.publisher = publisher(key, value);
  } else if (key == "endpoint") {
    config.endpoint = endpoint(key, value);
  } else if (key == "replay_endpoint") {
    config.replay_endpoint = value.is_null() ? "" : endpoint(key, value);
  } else if (key == "buffer_steps") {
    config.buffer_steps = count(key, value);
  } else if (key == "hwm") {
    config.hwm = count(key, value);
  } else if (key == "max_queue_size") {
    config.max_queue_size = count(key, value);
  } else if (key == "topic") {
    config.topic = text(key, value);
  } else if (key == "event_form") {
    config.event_form = event_form(key, value);
  } else {
    refuse(key,
           "is not supported; the keys are enable_kv_cache_events, publisher, endpoint, "
           "replay_endpoint, buffer_steps, hwm, max_queue_size, topic and event_form");
  }
}

}  // namespace

std::string Config::sources() const {
  Json sources = Json::object();
  if (on()) {
    sources["0"] = {{"enable_kv_cache_events", true},
                    {"publisher", "zmq"},
                    {"endpoint", endpoint},
                    {"replay_endpoint", replay_endpoint.empty() ? Json() : Json(replay_endpoint)},
                    {"buffer_steps", buffer_steps},
                    {"hwm", hwm},
                    {"max_queue_size", max_queue_size},
                    {"topic", topic},
                    {"event_form", event_form == EventForm::kMap ? "map" : "array"}};
  }
  return sources.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Config parse_config(std::string_view json) {
  const Json given = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) {
    throw SetupError(fmt::format(
        R"({}: must be a JSON object, like {{"enable_kv_cache_events": true}})", kFlag));
  }
  Config config;
  for (const auto& [key, value] : given.items()) set(config, key, value);
  return config;
}

}  // namespace octavo::kv_events
