// batch_json.h - OpenAI's JSON of files, batches and the lines of a batch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/fields/json_text.h"
#include "server/http/http.h"
#include "state/batch_table.h"

namespace octavo::server {

api::Json file_json(const state::FileRecord& file);
api::Json file_schema();
api::Json batch_json(const state::BatchRecord& batch);
api::Json batch_schema();
// A part of a list. `items` has one more than the limit if there are more.
api::Json list_json(std::vector<api::Json> items, int limit);
api::Json list_schema(api::Json item);

// A line of an output or error file: the answer to a line, or why there is none.
std::string answered_line(const std::string& custom_id, const std::string& request_id,
                          const HttpResponse& response);
std::string unanswered_line(const std::string& custom_id, std::string_view code,
                            std::string_view message);

}  // namespace octavo::server
