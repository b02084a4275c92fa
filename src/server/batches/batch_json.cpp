#include "server/batches/batch_json.h"

#include <fmt/format.h>

#include <optional>

#include "api/request_id.h"

namespace octavo::server {

using namespace api;

namespace {

Json or_null(const std::optional<int64_t>& time) { return time ? Json(*time) : Json(nullptr); }
Json or_null(const std::string& id) { return id.empty() ? Json(nullptr) : Json(id); }
// Text that this server wrote.
Json parsed_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json::parse(text, nullptr, false);
}

Json typed(const char* type) { return {{"type", type}}; }
Json typed_or_null(const char* type) { return {{"type", {type, "null"}}}; }

std::string fresh_line_id() { return "batch_req_" + fresh_request_id(); }

}  // namespace

Json file_json(const state::FileRecord& file) {
  return {{"id", file.id},
          {"object", "file"},
          {"bytes", file.bytes},
          {"created_at", file.created_at},
          {"expires_at", nullptr},
          {"filename", file.filename},
          {"purpose", file.purpose},
          {"status", "processed"},
          {"status_details", nullptr}};
}

Json file_schema() {
  return {{"type", "object"},
          {"properties",
           {{"id", typed("string")},
            {"object", typed("string")},
            {"bytes", typed("integer")},
            {"created_at", typed("integer")},
            {"expires_at", typed_or_null("integer")},
            {"filename", typed("string")},
            {"purpose", typed("string")},
            {"status", typed("string")},
            {"status_details", typed_or_null("string")}}},
          {"required", {"id", "object", "bytes", "created_at", "filename", "purpose", "status"}}};
}

Json batch_json(const state::BatchRecord& batch) {
  return {{"id", batch.id},
          {"object", "batch"},
          {"endpoint", batch.endpoint},
          {"errors", parsed_or_null(batch.errors)},
          {"input_file_id", batch.input_file},
          {"completion_window", batch.completion_window},
          {"status", batch.status},
          {"output_file_id", or_null(batch.output_file)},
          {"error_file_id", or_null(batch.error_file)},
          {"created_at", batch.created_at},
          {"in_progress_at", or_null(batch.in_progress_at)},
          {"expires_at", batch.expires_at},
          {"finalizing_at", or_null(batch.finalizing_at)},
          {"completed_at", or_null(batch.completed_at)},
          {"failed_at", or_null(batch.failed_at)},
          {"expired_at", or_null(batch.expired_at)},
          {"cancelling_at", or_null(batch.cancelling_at)},
          {"cancelled_at", or_null(batch.cancelled_at)},
          {"request_counts",
           {{"total", batch.total}, {"completed", batch.completed}, {"failed", batch.failed}}},
          {"metadata", parsed_or_null(batch.metadata)}};
}

Json batch_schema() {
  Json properties = {{"id", typed("string")},
                     {"object", typed("string")},
                     {"endpoint", typed("string")},
                     {"errors", typed_or_null("object")},
                     {"input_file_id", typed("string")},
                     {"completion_window", typed("string")},
                     {"status",
                      {{"type", "string"},
                       {"enum",
                        {"validating", "failed", "in_progress", "finalizing", "completed",
                         "expired", "cancelling", "cancelled"}}}},
                     {"output_file_id", typed_or_null("string")},
                     {"error_file_id", typed_or_null("string")},
                     {"request_counts", typed("object")},
                     {"metadata", typed_or_null("object")}};
  for (const char* time :
       {"created_at", "in_progress_at", "expires_at", "finalizing_at", "completed_at", "failed_at",
        "expired_at", "cancelling_at", "cancelled_at"})
    properties[time] = typed_or_null("integer");
  return {
      {"type", "object"},
      {"properties", std::move(properties)},
      {"required",
       {"id", "object", "endpoint", "input_file_id", "completion_window", "status", "created_at"}}};
}

Json list_json(std::vector<Json> items, int limit) {
  const bool more = items.size() > static_cast<size_t>(limit);
  if (more) items.pop_back();
  const auto id_of = [](const Json& item) { return item["id"]; };
  Json list = {{"object", "list"},
               {"data", Json::array()},
               {"first_id", items.empty() ? Json(nullptr) : id_of(items.front())},
               {"last_id", items.empty() ? Json(nullptr) : id_of(items.back())},
               {"has_more", more}};
  for (Json& item : items) list["data"].push_back(std::move(item));
  return list;
}

Json list_schema(Json item) {
  return {{"type", "object"},
          {"properties",
           {{"object", typed("string")},
            {"data", {{"type", "array"}, {"items", std::move(item)}}},
            {"first_id", typed_or_null("string")},
            {"last_id", typed_or_null("string")},
            {"has_more", typed("boolean")}}},
          {"required", {"object", "data", "has_more"}}};
}

std::string answered_line(const std::string& custom_id, const std::string& request_id,
                          const HttpResponse& response) {
  // The body is a JSON object already.
  return fmt::format(
      R"({{"id":{},"custom_id":{},"response":{{"status_code":{},"request_id":{},"body":{}}},"error":null}})",
      json_string(fresh_line_id()), json_string(custom_id), response.status,
      json_string(request_id), response.body);
}

std::string unanswered_line(const std::string& custom_id, std::string_view code,
                            std::string_view message) {
  return fmt::format(
      R"({{"id":{},"custom_id":{},"response":null,"error":{{"code":{},"message":{}}}}})",
      json_string(fresh_line_id()), json_string(custom_id), json_string(code),
      json_string(message));
}

}  // namespace octavo::server
