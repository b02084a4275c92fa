#include "server/batches/batch_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "api/fields/field_kinds.h"

namespace octavo::server {

using namespace api;

namespace {

constexpr std::array<const char*, 6> kBatchEndpoints = {"/v1/chat/completions", "/v1/completions",
                                                        "/v1/embeddings",       "/v1/responses",
                                                        "/v1/rerank",           "/v1/score"};
// OpenAI's limits of metadata.
constexpr size_t kMostMetadata = 16;
constexpr size_t kMetadataKeyBytes = 64;
constexpr size_t kMetadataValueBytes = 512;
constexpr int64_t kLongestWindow = 30 * 86'400;

// "24h", "90m", "7d", "30s" in seconds.
int64_t window_of(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const bool one_unit = read.ec == std::errc() && end - read.ptr == 1;
  const int64_t unit = !one_unit          ? 0
                       : *read.ptr == 's' ? 1
                       : *read.ptr == 'm' ? 60
                       : *read.ptr == 'h' ? 3'600
                       : *read.ptr == 'd' ? 86'400
                                          : 0;
  if (unit == 0 || number < 1 || number > kLongestWindow / unit)
    refuse("completion_window", "must be a time such as 24h, 90m or 7d, of at most 30 days");
  return number * unit;
}

void read_metadata(const Json& value, BatchRequest& request) {
  if (!value.is_object() || value.size() > kMostMetadata)
    refuse("metadata", fmt::format("must be an object with at most {} keys", kMostMetadata));
  for (const auto& [key, text] : value.items()) {
    if (key.size() > kMetadataKeyBytes) refuse("metadata", "has a key of more than 64 bytes");
    to_string(text, "metadata", kMetadataValueBytes);
  }
  request.metadata = dump(value);
}

void read_endpoint(const Json& value, BatchRequest& request) {
  request.endpoint = to_string(value, "endpoint", kMaxNameBytes);
  if (std::ranges::find(kBatchEndpoints, request.endpoint) == kBatchEndpoints.end())
    refuse("endpoint", fmt::format("must be one of {}", fmt::join(kBatchEndpoints, ", ")));
}

Field<BatchRequest> required(Field<BatchRequest> field) {
  field.required = true;
  return field;
}

FieldTable<BatchRequest> make_fields() {
  Json endpoint = {{"type", "string"}, {"enum", Json::array()}};
  for (const char* path : kBatchEndpoints) endpoint["enum"].push_back(path);
  return {
      required(used<BatchRequest>("input_file_id", filled_string_schema(kMaxNameBytes),
                                  "A file of /v1/files with one request per line",
                                  [](const Json& v, BatchRequest& t) {
                                    t.input_file_id = to_string(v, "input_file_id", kMaxNameBytes);
                                  })),
      required(used<BatchRequest>("endpoint", std::move(endpoint), "The url of every line",
                                  read_endpoint)),
      required(used<BatchRequest>(
          "completion_window", {{"type", "string"}, {"pattern", "^[0-9]+[smhd]$"}},
          "Requests that are not answered after this time are cancelled: 24h, 90m, 7d",
          [](const Json& v, BatchRequest& t) {
            t.completion_window = to_string(v, "completion_window", kMaxNameBytes);
            t.window_seconds = window_of(t.completion_window);
          })),
      used<BatchRequest>("metadata",
                         {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}},
                         "Up to 16 pairs of texts, returned with the batch", read_metadata),
      refused<BatchRequest>("output_expires_after",
                            "is not supported; delete the output file when it is not needed"),
  };
}

}  // namespace

const FieldTable<BatchRequest>& batch_fields() {
  static const FieldTable<BatchRequest> fields = make_fields();
  return fields;
}

BatchRequest read_batch_request(const Json& body) {
  BatchRequest request;
  read_fields(body, batch_fields(), request);
  return request;
}

}  // namespace octavo::server
