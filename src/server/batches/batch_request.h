// batch_request.h - the body of POST /v1/batches.
#pragma once

#include <cstdint>
#include <string>

#include "api/fields/body_fields.h"

namespace octavo::server {

struct BatchRequest {
  std::string input_file_id = {};
  std::string endpoint = {};
  std::string completion_window = {};
  int64_t window_seconds = 0;
  std::string metadata = {};  // JSON; empty: none
};

const api::FieldTable<BatchRequest>& batch_fields();

// Throws RequestError(400).
BatchRequest read_batch_request(const api::Json& body);

}  // namespace octavo::server
