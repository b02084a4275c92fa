// response_table.h - stored responses of /v1/responses. One thread at a time. No MLX.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "state/database.h"

namespace octavo::state {

struct ResponseRecord {
  int64_t serial = 0;
  std::string owner = {};
  std::string id = {};
  std::string previous_id = {};  // empty: none
  int64_t previous_serial = 0;
  std::string object = {};  // JSON
  std::string input = {};   // JSON
};

class ResponseTable {
 public:
  explicit ResponseTable(const Database& database) : connection_(database.connection()) {}

  void put(const ResponseRecord& response);
  void erase(int64_t serial);
  // Oldest first.
  std::vector<ResponseRecord> all() const;

 private:
  const Connection& connection_;
};

}  // namespace octavo::state
