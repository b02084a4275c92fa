// POST and GET /v1/batches; GET /v1/batches/{batch_id}; POST /v1/batches/{batch_id}/cancel
#include <fmt/format.h>

#include "api/request_id.h"
#include "base/error.h"
#include "base/units.h"
#include "server/batches/batch_json.h"
#include "server/batches/batch_request.h"
#include "server/batches/batch_runner.h"
#include "server/batches/state_request.h"
#include "server/batches/unix_time.h"
#include "server/endpoints/endpoints.h"

namespace octavo::server {

using namespace api;

namespace {

constexpr std::string_view kBatchesPrefix = "/v1/batches/";
constexpr std::string_view kCancel = "/cancel";

state::BatchRecord batch_of(const std::string& body, const std::string& owner) {
  const BatchRequest request = read_batch_request(parse_object(body));
  const int64_t now = unix_now();
  return {.id = "batch_" + fresh_request_id(),
          .owner = owner,
          .endpoint = request.endpoint,
          .input_file = request.input_file_id,
          .completion_window = request.completion_window,
          .metadata = request.metadata,
          .created_at = now,
          .expires_at = now + request.window_seconds};
}

// The lines are copied later, so the inputs of batches that wait for that count already. Their answers
// come in addition. Runs on the state thread.
void check_room(const state::Database& database, const std::string& owner, int64_t bytes,
                const StateOptions& options, int parts) {
  const state::BatchTable batches(database);
  const int64_t share = options.max_bytes / parts;
  const int64_t owned = state::FileTable(database).bytes(owner) + batches.unfinished_bytes(owner);
  if (parts > 1 && owned + bytes > share)
    throw RequestError(413, "input_file_id",
                       fmt::format("the files and open batches of this API key would take more "
                                   "than {}, its part of --state-max-bytes; delete some files",
                                   format_bytes(static_cast<uint64_t>(share))));
  if (database.used_bytes() + batches.validating_bytes() + bytes > options.max_bytes)
    throw RequestError(413, "input_file_id",
                       "too little space is left for this batch; delete files, or start the server "
                       "with a larger --state-max-bytes");
}

// Runs on the state thread.
state::BatchRecord create_in(const state::Database& database, state::BatchRecord batch,
                             const StateOptions& options, int parts) {
  const auto file = state::FileTable(database).find(batch.owner, batch.input_file);
  if (!file || file->purpose != "batch")
    throw RequestError(400, "input_file_id",
                       fmt::format("no file with the purpose batch has the id {}; upload it to "
                                   "/v1/files first",
                                   batch.input_file));
  state::BatchTable batches(database);
  if (batches.unfinished_count() >= options.max_open_batches)
    throw RequestError(429, "",
                       fmt::format("{} batches have not ended, which is the limit; try again later",
                                   options.max_open_batches));
  if (parts > 1 && batches.unfinished_count(batch.owner) >= options.max_open_batches / parts)
    throw RequestError(429, "",
                       fmt::format("{} batches of this API key have not ended, which is its limit; "
                                   "try again later",
                                   options.max_open_batches / parts));
  if (batches.count() >= options.max_batches && !batches.forget_one())
    throw RequestError(
        413, "", fmt::format("{} batches are stored, which is the limit", options.max_batches));
  check_room(database, batch.owner, file->bytes, options, parts);
  batch.input_bytes = file->bytes;
  batches.create(batch);
  return batch;
}

Awaitable<void> create_batch(HttpContext& context, Exchange& exchange) {
  PersistentState& state = state_of(context);
  require_json(exchange.request());
  HeldBody body = exchange.take_body();
  const auto create = [text = std::move(body.text),
                       owner = state_owner(context, exchange.request()), options = state.options(),
                       parts = state_parts(context)](const state::Database& database) {
    return create_in(database, batch_of(text, owner), options, parts);
  };
  const state::BatchRecord batch = co_await state.run(create);
  context.batches->add(batch);
  co_await exchange.send(json_response(batch_json(batch)));
}

Awaitable<state::BatchRecord> find_batch(HttpContext& context, const HttpRequest& request,
                                         std::string_view suffix) {
  PersistentState& state = state_of(context);
  const std::string id = id_in_path(request, kBatchesPrefix, suffix);
  const auto find = [id, owner = state_owner(context, request)](const state::Database& database) {
    return state::BatchTable(database).find(owner, id);
  };
  std::optional<state::BatchRecord> batch = co_await state.run(find);
  if (!batch) throw RequestError(404, "batch_id", "no batch has the id " + id);
  co_return std::move(*batch);
}

Awaitable<void> list_batches(HttpContext& context, Exchange& exchange) {
  PersistentState& state = state_of(context);
  const state::Page page = page_of(exchange.request(), 20, 100);
  const auto list =
      [page, owner = state_owner(context, exchange.request())](const state::Database& database) {
        return state::BatchTable(database).list(owner, page);
      };
  const std::vector<state::BatchRecord> batches = co_await state.run(list);
  std::vector<Json> items;
  for (const state::BatchRecord& batch : batches) items.push_back(batch_json(batch));
  co_await exchange.send(json_response(list_json(std::move(items), page.limit)));
}

Awaitable<void> get_batch(HttpContext& context, Exchange& exchange) {
  const state::BatchRecord batch = co_await find_batch(context, exchange.request(), "");
  co_await exchange.send(json_response(batch_json(batch)));
}

Awaitable<void> cancel_batch(HttpContext& context, Exchange& exchange) {
  refuse_other_sites(context, exchange.request());
  const state::BatchRecord found = co_await find_batch(context, exchange.request(), kCancel);
  const auto cancel = [found](const state::Database& database) {
    state::BatchTable batches(database);
    if (!batches.cancel(found.key, unix_now()) && found.status != "cancelling")
      throw RequestError(409, "batch_id",
                         fmt::format("the batch is {} and cannot be cancelled", found.status));
    return *batches.find(found.owner, found.id);
  };
  const state::BatchRecord batch = co_await state_of(context).run(cancel);
  context.batches->cancel(batch.key);
  co_await exchange.send(json_response(batch_json(batch)));
}

}  // namespace

std::vector<HttpEndpoint> batch_endpoints() {
  return {
      {.method = "POST",
       .path = "/v1/batches",
       .handler = create_batch,
       .doc = json_operation("Create a batch", schema_of(batch_fields()), batch_schema())},
      {.method = "GET",
       .path = "/v1/batches",
       .handler = list_batches,
       .doc = with_page(operation("List batches", list_schema(batch_schema())))},
      {.method = "GET",
       .path = "/v1/batches/{batch_id}",
       .handler = get_batch,
       .doc = with_path_id(operation("Get a batch", batch_schema()), "batch_id")},
      {.method = "POST",
       .path = "/v1/batches/{batch_id}/cancel",
       .handler = cancel_batch,
       .doc = with_path_id(operation("Cancel a batch", batch_schema()), "batch_id")},
  };
}

}  // namespace octavo::server
