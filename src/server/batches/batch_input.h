// batch_input.h - reads the lines of a batch from its input file into the database. State thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/fields/json_text.h"
#include "state/batch_table.h"

namespace octavo::server {

struct BatchInputLimits {
  size_t line_bytes = 8u << 20;
  int64_t lines = 50'000;
};

class BatchInput {
 public:
  BatchInput(const state::BatchRecord& batch, const state::FileRecord& file,
             BatchInputLimits limits)
      : batch_(batch), file_(file), limits_(limits) {}

  // Reads a chunk of the file, in one transaction. False after the last one.
  bool read_more(const state::Database& database);
  // OpenAI's list of errors as JSON, or empty: the input is valid. After the last chunk.
  std::string errors() const;
  int64_t lines() const { return lines_; }

 private:
  void add_line(state::BatchTable& batches, std::string_view text);
  void add_error(const char* code, const std::string& message, const std::string& param = {});

  state::BatchRecord batch_;
  state::FileRecord file_;
  BatchInputLimits limits_;
  int64_t chunks_ = 0;
  int64_t bytes_ = 0;   // read
  int64_t number_ = 0;  // of the line in the file, from 1
  int64_t lines_ = 0;   // added
  std::string rest_ = {};
  bool ended_ = false;
  api::Json errors_ = api::Json::array();
};

}  // namespace octavo::server
