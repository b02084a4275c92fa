// GET /version, /load, /metrics, /kv_event_sources and /v1/octavo/memory: monitoring.
#include "base/system_memory.h"
#include "server/endpoints/endpoints.h"
#include "server/server_context.h"

namespace octavo::server {

using namespace api;

namespace {

HttpResponse version(ServerContext& context, const HttpRequest&) {
  return json_response({{"version", context.options.version}});
}

HttpResponse load(ServerContext& context, const HttpRequest&) {
  return json_response({{"server_load", context.open_requests()}});
}

HttpResponse metrics(ServerContext& context, const HttpRequest&) {
  context.metrics.text_workers_stuck.Set(
      context.text_workers.busy_for(context.options.stuck_after));
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = context.metrics.text()};
}

HttpResponse kv_event_sources(ServerContext& context, const HttpRequest&) {
  return {.content_type = "application/json", .body = context.options.kv_event_sources};
}

HttpResponse memory(ServerContext& context, const HttpRequest&) {
  const EngineStats stats = context.model.engine.stats();
  Json plan = Json::object();
  for (const MemoryRow& row : context.model.memory) plan[row.name] = row.bytes;
  return json_response(
      {{"plan_bytes", std::move(plan)},
       {"resident_bytes", resident_bytes()},
       {"max_model_len", context.model.max_model_len},
       {"pages",
        {{"block_tokens", context.model.block_tokens},
         {"total", stats.page_count},
         {"referenced", stats.referenced_pages},
         {"cached", stats.cached_pages},
         {"free", stats.page_count - stats.referenced_pages - stats.cached_pages}}}});
}

Json object_with(const char* field, const char* type) {
  return {{"type", "object"},
          {"properties", {{field, {{"type", type}}}}},
          {"required", Json::array({field})}};
}

}  // namespace

std::vector<Endpoint> status_endpoints() {
  Json scrape = operation("Metrics in Prometheus format", {{"type", "string"}});
  scrape["responses"]["200"]["content"] = {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  return {
      simple_endpoint("GET", "/version", version,
                      operation("Octavo's version", object_with("version", "string"))),
      simple_endpoint("GET", "/load", load,
                      operation("Number of open requests", object_with("server_load", "integer"))),
      simple_endpoint("GET", "/metrics", metrics, std::move(scrape)),
      simple_endpoint("GET", "/kv_event_sources", kv_event_sources,
                      operation("Options of --kv-events-config by data parallel rank; empty "
                                "without KV events",
                                {{"type", "object"}})),
      simple_endpoint("GET", "/v1/octavo/memory", memory,
                      operation("Memory plan and current use", {{"type", "object"}}))};
}

}  // namespace octavo::server
