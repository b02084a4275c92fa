// GET /server_info and /v1/loads: what routers ask a replica for.
#include <algorithm>

#include "server/endpoints/endpoints.h"
#include "server/server_context.h"

namespace octavo::server {

using namespace api;

namespace {

int64_t cache_tokens(const ServerContext& context, int pages) {
  return int64_t{pages} * context.model.block_tokens;
}

// vLLM's name of what the server does.
const char* task_of(const ServedModel& model) {
  if (!model.pooling) return "generate";
  return model.score_head ? "score" : "embed";
}

HttpResponse server_info(ServerContext& context, const HttpRequest&) {
  const ServedModel& model = context.model;
  return json_response(
      {{"version", context.options.version},
       {"model_path", model.root},
       {"served_model_name", model.name()},
       {"system_fingerprint", model.fingerprint},
       {"max_model_len", model.max_model_len},
       {"max_running_requests", model.max_num_seqs},
       {"block_size", model.block_tokens},
       {"max_total_num_tokens", cache_tokens(context, model.engine.stats().page_count)},
       {"enable_prefix_caching", model.enable_prefix_caching},
       {"runner_type", model.pooling ? "pooling" : "generate"},
       {"supported_tasks", Json::array({task_of(model)})},
       // SGLang's name: true for rerankers too.
       {"is_embedding", model.pooling.has_value()},
       {"tp_size", 1},
       {"dp_size", 1}});
}

// With SGLang's names.
HttpResponse loads(ServerContext& context, const HttpRequest&) {
  const EngineStats stats = context.model.engine.stats();
  const int running = stats.scheduler.running;
  const int waiting = std::max(0, stats.open_requests - running);
  const int64_t total = cache_tokens(context, stats.page_count);
  const int64_t used = cache_tokens(context, stats.referenced_pages);
  const double usage = total > 0 ? static_cast<double>(used) / static_cast<double>(total) : 0;
  const Json load = {{"dp_rank", 0},
                     {"num_running_reqs", running},
                     {"num_waiting_reqs", waiting},
                     {"num_total_reqs", running + waiting},
                     {"num_used_tokens", used},
                     {"max_total_num_tokens", total},
                     {"token_usage", usage},
                     {"max_running_requests", context.model.max_num_seqs}};
  const Json aggregate = {{"total_running_reqs", running},
                          {"total_waiting_reqs", waiting},
                          {"total_reqs", running + waiting},
                          {"avg_token_usage", usage}};
  return json_response({{"version", context.options.version},
                        {"dp_rank_count", 1},
                        {"loads", Json::array({load})},
                        {"aggregate", aggregate}});
}

}  // namespace

std::vector<Endpoint> replica_endpoints() {
  return {simple_endpoint("GET", "/server_info", server_info,
                          operation("The model and its limits, for routers", {{"type", "object"}})),
          simple_endpoint("GET", "/v1/loads", loads,
                          operation("Running and waiting requests and the use of the cache, with "
                                    "SGLang's names",
                                    {{"type", "object"}}))};
}

}  // namespace octavo::server
