#include "front/ollama_routes.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "api/fields/operation.h"
#include "api/ollama/ollama_models.h"
#include "api/ollama/rfc3339.h"
#include "base/sha256.h"
#include "server/http/endpoint.h"

namespace octavo::front {
namespace {

using api::Json;
using server::Exchange;
using server::Route;

// Clients need one that differs between models. Reading a model's files for it would take minutes.
std::string digest_of_source(const CatalogModel& model) {
  const std::string text = fmt::format("{} {}", model.source, model.file_bytes);
  std::string digest;
  for (const uint8_t byte :
       sha256(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())))
    digest += fmt::format("{:02x}", byte);
  return digest;
}

std::string modified_at(const CatalogModel& model) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(model.source, error);
  const auto age = std::filesystem::file_time_type::clock::now() - time;
  const auto now = std::chrono::system_clock::now();
  return api::rfc3339(error ? now
                            : now - std::chrono::duration_cast<std::chrono::microseconds>(age));
}

// What is known of a model that may not be loaded.
Json brief_details(const CatalogModel& model) {
  return {
      {"parent_model", ""},   {"format", model.source.ends_with(".gguf") ? "gguf" : "safetensors"},
      {"family", ""},         {"families", Json::array()},
      {"parameter_size", ""}, {"quantization_level", ""}};
}

std::string expiry(const LoadedModel& model) {
  if (!model.expires) return api::kNeverExpires;
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(
      *model.expires - std::chrono::steady_clock::now());
  return api::rfc3339(std::chrono::system_clock::now() + rest);
}

class OllamaHandlers {
 public:
  OllamaHandlers(ModelPool& pool, const std::string& version)
      : pool_(&pool), version_({{"version", api::kOllamaApiVersion}, {"octavo", version}}) {}

  Awaitable<void> tags(Exchange& exchange) const {
    const std::vector<ModelStatus> statuses = co_await pool_->statuses();
    co_await exchange.send(server::json_response(ollama_tags_of(statuses)));
  }
  Awaitable<void> running(Exchange& exchange) const {
    const std::vector<ModelStatus> statuses = co_await pool_->statuses();
    co_await exchange.send(server::json_response(ollama_ps_of(statuses)));
  }
  Awaitable<void> version(Exchange& exchange) const {
    co_await exchange.send(server::json_response(version_));
  }

 private:
  ModelPool* pool_;
  Json version_;
};

}  // namespace

Json ollama_tags_of(const std::vector<ModelStatus>& statuses) {
  Json models = Json::array();
  for (const ModelStatus& status : statuses) {
    const CatalogModel& model = *status.model;
    models.push_back({{"name", model.name},
                      {"model", model.name},
                      {"modified_at", modified_at(model)},
                      {"size", model.file_bytes},
                      {"digest", digest_of_source(model)},
                      {"details", brief_details(model)}});
  }
  return {{"models", std::move(models)}};
}

Json ollama_ps_of(const std::vector<ModelStatus>& statuses) {
  Json models = Json::array();
  for (const ModelStatus& status : statuses) {
    if (!status.loaded || !status.loaded->ready) continue;
    models.push_back({{"name", status.model->name},
                      {"model", status.model->name},
                      {"size", status.loaded->planned_bytes},
                      {"digest", digest_of_source(*status.model)},
                      {"details", brief_details(*status.model)},
                      {"expires_at", expiry(*status.loaded)},
                      {"size_vram", 0},
                      {"context_length", status.max_model_len}});
  }
  return {{"models", std::move(models)}};
}

std::vector<Route> ollama_routes(ModelPool& pool, const std::string& version) {
  const auto handlers = std::make_shared<const OllamaHandlers>(pool, version);
  const auto route = [&](const char* path,
                         Awaitable<void> (OllamaHandlers::*handler)(Exchange&) const,
                         const char* about) {
    return Route{.method = "GET",
                 .path = path,
                 .handler = [handlers, handler](
                                Exchange& exchange) { return ((*handlers).*handler)(exchange); },
                 .doc = api::operation(about, {{"type", "object"}})};
  };
  return {
      route("/api/tags", &OllamaHandlers::tags, "List all models (Ollama's API)"),
      route("/api/ps", &OllamaHandlers::running, "List loaded models (Ollama's API)"),
      route("/api/version", &OllamaHandlers::version, "The version of Ollama whose API this is")};
}

}  // namespace octavo::front
