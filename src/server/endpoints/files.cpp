// POST and GET /v1/files; GET and DELETE /v1/files/{file_id}; GET /v1/files/{file_id}/content
#include "api/fields/field_kinds.h"
#include "base/error.h"
#include "server/batches/batch_json.h"
#include "server/batches/file_upload.h"
#include "server/batches/state_request.h"
#include "server/batches/upload_slot.h"
#include "server/endpoints/endpoints.h"

namespace octavo::server {

using namespace api;

namespace {

constexpr std::string_view kFilesPrefix = "/v1/files/";
constexpr std::string_view kContent = "/content";

Awaitable<void> upload_file(HttpContext& context, Exchange& exchange) {
  PersistentState& state = state_of(context);
  const HttpRequest& request = exchange.request();
  refuse_other_sites(context, request);
  const std::string owner = state_owner(context, request);
  const int parts = state_parts(context);
  const UploadSlot slot(state.uploaders, owner, parts);
  FileUpload upload(state, owner, parts);
  MultipartReader form(multipart_boundary(request.header("Content-Type")), upload);
  while (true) {
    const std::string part = co_await exchange.read_more();
    if (part.empty()) break;
    form.feed(part);
    co_await upload.store();
  }
  form.finish();
  const state::FileRecord file = co_await upload.finish();
  co_await exchange.send(json_response(file_json(file)));
}

Awaitable<state::FileRecord> find_file(HttpContext& context, const HttpRequest& request,
                                       std::string_view suffix) {
  PersistentState& state = state_of(context);
  const std::string id = id_in_path(request, kFilesPrefix, suffix);
  const auto find = [id, owner = state_owner(context, request)](const state::Database& database) {
    return state::FileTable(database).find(owner, id);
  };
  std::optional<state::FileRecord> file = co_await state.run(find);
  if (!file) throw RequestError(404, "file_id", "no file has the id " + id);
  co_return std::move(*file);
}

Awaitable<void> list_files(HttpContext& context, Exchange& exchange) {
  PersistentState& state = state_of(context);
  const HttpRequest& request = exchange.request();
  const state::Page page = page_of(request, 1000, 10'000);
  // The state thread writes the text, too: a list may have ten thousand files.
  const auto list = [page, owner = state_owner(context, request),
                     purpose = query_value(request.query, "purpose").value_or("")](
                        const state::Database& database) {
    std::vector<Json> items;
    for (const state::FileRecord& file : state::FileTable(database).list(owner, purpose, page))
      items.push_back(file_json(file));
    return dump(list_json(std::move(items), page.limit));
  };
  HttpResponse response;
  response.body = co_await state.run(list);
  co_await exchange.send(std::move(response));
}

Awaitable<void> get_file(HttpContext& context, Exchange& exchange) {
  const state::FileRecord file = co_await find_file(context, exchange.request(), "");
  co_await exchange.send(json_response(file_json(file)));
}

// The connection is closed if there is no chunk, so that the client does not take the beginning of a
// file for all of it.
template <typename Read>
Awaitable<std::optional<std::string>> read_or_close(PersistentState& state, Read read) {
  std::optional<std::string> chunk;
  try {
    chunk = co_await state.run(std::move(read));
  } catch (const RequestError&) {
    throw ClientGone();
  }
  if (!chunk || chunk->empty()) throw ClientGone();
  co_return chunk;
}

Awaitable<void> get_content(HttpContext& context, Exchange& exchange) {
  const state::FileRecord file = co_await find_file(context, exchange.request(), kContent);
  PersistentState& state = state_of(context);
  HttpResponse head{.content_type = "application/octet-stream"};
  if (exchange.request().method == "HEAD") {
    co_await exchange.send(std::move(head));
    co_return;
  }
  co_await exchange.start_stream(std::move(head));
  int64_t sent = 0;
  for (int64_t number = 0; sent < file.bytes; ++number) {
    const auto read = [key = file.key, number](const state::Database& database) {
      return state::FileTable(database).chunk(key, number);
    };
    const std::optional<std::string> chunk = co_await read_or_close(state, read);
    co_await exchange.write(*chunk);
    sent += static_cast<int64_t>(chunk->size());
  }
}

Awaitable<void> delete_file(HttpContext& context, Exchange& exchange) {
  const state::FileRecord file = co_await find_file(context, exchange.request(), "");
  const auto erase = [key = file.key](const state::Database& database) {
    state::FileTable(database).discard(key);
    return true;
  };
  co_await state_of(context).run(erase);
  const Json deleted = {{"id", file.id}, {"object", "file"}, {"deleted", true}};
  co_await exchange.send(json_response(deleted));
}

Json upload_operation() {
  Json doc = operation("Upload a file", file_schema());
  const Json file = {{"type", "string"},
                     {"contentMediaType", "application/jsonl"},
                     {"description", "The file, a part of multipart/form-data"}};
  const Json purpose = {{"type", "string"},
                        {"enum", Json::array({"batch"})},
                        {"description", "What the file is for"}};
  const Json form = {{"type", "object"},
                     {"properties", {{"file", file}, {"purpose", purpose}}},
                     {"required", {"file", "purpose"}}};
  doc["requestBody"] = {{"required", true},
                        {"content", {{"multipart/form-data", {{"schema", form}}}}}};
  return doc;
}

}  // namespace

std::vector<HttpEndpoint> file_endpoints() {
  const Json deleted = {{"type", "object"},
                        {"properties", {{"deleted", boolean_schema()}}},
                        {"required", Json::array({"deleted"})}};
  Json content = with_path_id(operation("Get the content of a file", Json::object()), "file_id");
  content["responses"]["200"]["content"] = {
      {"application/octet-stream", {{"schema", {{"type", "string"}}}}}};
  const char* one = "/v1/files/{file_id}";
  return {
      {.method = "POST",
       .path = "/v1/files",
       .handler = upload_file,
       .streams_body = true,
       .doc = upload_operation()},
      {.method = "GET",
       .path = "/v1/files",
       .handler = list_files,
       .doc = with_page(operation("List files", list_schema(file_schema())))},
      {.method = "GET",
       .path = "/v1/files/{file_id}/content",
       .handler = get_content,
       .doc = std::move(content)},
      {.method = "GET",
       .path = one,
       .handler = get_file,
       .doc = with_path_id(operation("Get a file", file_schema()), "file_id")},
      {.method = "DELETE",
       .path = one,
       .handler = delete_file,
       .doc = with_path_id(operation("Delete a file", deleted), "file_id")},
  };
}

}  // namespace octavo::server
