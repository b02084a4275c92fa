#include "capi/engine_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "api/fields/json_text.h"
#include "api/images/url_fetcher.h"
#include "base/error.h"
#include "llm/image_limits.h"

namespace octavo::capi {
namespace {

using api::Json;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw SetupError(name + ": " + why);
}

struct Option {
  std::string name;
  std::function<void(const Json& value, EngineSettings& settings)> read;
};

Option text(std::string name, std::function<std::string&(EngineSettings&)> place,
            std::vector<std::string> choices = {}) {
  auto read = [name, place, choices](const Json& value, EngineSettings& settings) {
    if (!value.is_string()) refuse(name, "must be a string");
    const auto chosen = value.get<std::string>();
    if (!choices.empty() && std::ranges::count(choices, chosen) == 0)
      refuse(name, fmt::format("must be one of {}", fmt::join(choices, ", ")));
    place(settings) = chosen;
  };
  return {name, read};
}

// A JSON object, or its text.
Option object(std::string name, std::function<std::string&(EngineSettings&)> place) {
  auto read = [name, place](const Json& value, EngineSettings& settings) {
    if (!value.is_string() && !value.is_object()) refuse(name, "must be an object");
    place(settings) = value.is_string() ? value.get<std::string>() : api::dump(value);
  };
  return {name, read};
}

// Bytes as a number, or as a string such as 4GiB.
Option bytes(std::string name, std::function<std::string&(EngineSettings&)> place) {
  auto read = [name, place](const Json& value, EngineSettings& settings) {
    if (!value.is_string() && !value.is_number_unsigned())
      refuse(name, "must be a number of bytes or a string such as \"4GiB\"");
    place(settings) = value.is_string() ? value.get<std::string>() : api::dump(value);
  };
  return {name, read};
}

int to_int(const std::string& name, const Json& value, int least) {
  if (!value.is_number_integer()) refuse(name, "must be a whole number");
  const auto number = value.get<int64_t>();
  if (number < least || number > std::numeric_limits<int>::max())
    refuse(name, fmt::format("must be at least {}", least));
  return static_cast<int>(number);
}

Option integer(std::string name, int ModelSettings::*field) {
  auto read = [name, field](const Json& value, EngineSettings& settings) {
    settings.model.*field = to_int(name, value, 1);
  };
  return {name, read};
}

Option flag(std::string name, bool ModelSettings::*field) {
  auto read = [name, field](const Json& value, EngineSettings& settings) {
    if (!value.is_boolean()) refuse(name, "must be true or false");
    settings.model.*field = value.get<bool>();
  };
  return {name, read};
}

// The same option, which also notes that it was given.
Option given(Option option, bool ModelSettings::*field) {
  auto read = [inner = std::move(option.read), field](const Json& value, EngineSettings& settings) {
    inner(value, settings);
    settings.model.*field = true;
  };
  return {std::move(option.name), read};
}

auto model_text(std::string ModelSettings::*field) {
  return [field](EngineSettings& s) -> std::string& { return s.model.*field; };
}

auto pooling_text(std::string PoolingSettings::*field) {
  return [field](EngineSettings& s) -> std::string& { return s.pooling.*field; };
}

void read_names(const Json& value, EngineSettings& settings) {
  auto& names = settings.serving.served_model_name;
  for (const Json& name : value.is_array() ? value : Json::array({value})) {
    if (!name.is_string()) refuse("served_model_name", "must be a string or a list of strings");
    names.push_back(name.get<std::string>());
  }
}

void read_media_domains(const Json& value, EngineSettings& settings) {
  api::UrlFetcherOptions options;
  for (const Json& host : value.is_array() ? value : Json::array({value})) {
    if (!host.is_string()) refuse("allowed_media_domains", "must be a host or a list of hosts");
    options.hosts.push_back(host.get<std::string>());
  }
  if (!options.hosts.empty())
    settings.serving.media_fetcher = std::make_shared<const api::UrlFetcher>(options);
}

void read_fraction(const Json& value, EngineSettings& settings) {
  if (!value.is_number()) refuse("memory_fraction", "must be a number");
  settings.model.memory_fraction = value.get<double>();
}

void read_image_cache(const Json& value, EngineSettings& settings) {
  const double gib = value.is_number() ? value.get<double>() : -1;
  if (!(gib >= 0 && gib <= kMaxImageCacheGib))
    refuse("mm_processor_cache_gb",
           fmt::format("must be a number from 0 to {}", kMaxImageCacheGib));
  settings.model.mm_processor_cache_gb = gib;
}

void read_thinking(const Json& value, EngineSettings& settings) {
  if (value != "on" && value != "off" && value != "auto")
    refuse("thinking", "must be one of on, off, auto");
  if (value != "auto") settings.serving.dialect.thinking = value == "on";
}

std::vector<Option> model_options() {
  using Model = ModelSettings;
  return {text("device", model_text(&Model::device)),
          text("dtype", model_text(&Model::dtype)),
          flag("strict_config", &Model::strict_config),
          text("chat_template", model_text(&Model::chat_template)),
          text("merge_adapter", model_text(&Model::merge_adapter)),
          text("kv_cache_dtype", model_text(&Model::kv_cache_dtype), {"auto", "int8"}),
          integer("block_size", &Model::block_size),
          integer("max_model_len", &Model::max_model_len),
          bytes("kv_memory", model_text(&Model::kv_memory)),
          {"memory_fraction", read_fraction},
          bytes("wired_limit", model_text(&Model::wired_limit)),
          given(integer("max_num_batched_tokens", &Model::max_num_batched_tokens),
                &Model::batched_tokens_given),
          integer("max_num_seqs", &Model::max_num_seqs),
          text("scheduling_policy", model_text(&Model::scheduling_policy), {"fcfs", "priority"}),
          given(flag("enable_prefix_caching", &Model::enable_prefix_caching),
                &Model::prefix_caching_given),
          object("speculative_config", model_text(&Model::speculative_config)),
          text("prefix_disk", model_text(&Model::prefix_disk)),
          bytes("prefix_disk_size", model_text(&Model::prefix_disk_size)),
          object("limit_mm_per_prompt", model_text(&Model::limit_mm_per_prompt)),
          object("mm_processor_kwargs", model_text(&Model::mm_processor_kwargs)),
          integer("image_max_tokens", &Model::image_max_tokens),
          {"mm_processor_cache_gb", read_image_cache},
          integer("threads", &Model::threads),
          flag("pin_threads", &Model::pin_threads)};
}

std::vector<Option> serving_options() {
  using Pooling = PoolingSettings;
  const auto dialect = [](std::string ChatDialectOptions::*field) {
    return [field](EngineSettings& s) -> std::string& { return s.serving.dialect.*field; };
  };
  const auto config = [](EngineSettings& s) -> std::string& { return s.serving.generation_config; };
  return {text("runner", pooling_text(&Pooling::runner), {"auto", "generate", "pooling"}),
          object("pooler_config", pooling_text(&Pooling::pooler_config)),
          object("hf_overrides", pooling_text(&Pooling::hf_overrides)),
          text("generation_config", config, {"auto", "vllm"}),
          {"served_model_name", read_names},
          {"allowed_media_domains", read_media_domains},
          text("tool_call_parser", dialect(&ChatDialectOptions::tool_call_parser)),
          text("reasoning_parser", dialect(&ChatDialectOptions::reasoning_parser)),
          {"thinking", read_thinking},
          {"thinking_budget", [](const Json& value, EngineSettings& settings) {
             settings.serving.dialect.thinking_budget = to_int("thinking_budget", value, 0);
           }}};
}

const std::vector<Option>& options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> both = model_options();
    for (Option& option : serving_options()) both.push_back(std::move(option));
    return both;
  }();
  return all;
}

Json parse_options(const std::string& text) {
  try {
    return api::parse_object(text);
  } catch (const RequestError& error) {
    throw SetupError(std::string("options: ") + error.what());
  }
}

}  // namespace

EngineSettings read_engine_settings(const std::string& model, const std::string& options_json) {
  EngineSettings settings;
  settings.model.model = model;
  settings.serving.version = OCTAVO_VERSION;
  const Json given = parse_options(options_json);
  for (const auto& [name, value] : given.items()) {
    const auto option = std::ranges::find(options(), name, &Option::name);
    if (option == options().end()) {
      std::vector<std::string> known;
      for (const Option& one : options()) known.push_back(one.name);
      refuse(name,
             fmt::format("is not a known option; the options are {}", fmt::join(known, ", ")));
    }
    if (!value.is_null()) option->read(value, settings);
  }
  return settings;
}

}  // namespace octavo::capi
