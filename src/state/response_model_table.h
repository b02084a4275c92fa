// response_model_table.h - which model made a stored response of /v1/responses, for a front process.
// One thread at a time. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "state/database.h"

namespace octavo::state {

class ResponseModelTable {
 public:
  // Forgets the oldest entries beyond `most`.
  explicit ResponseModelTable(const Database& database, int64_t most = 1 << 16)
      : connection_(database.connection()), most_(most) {}

  void put(const std::string& owner, const std::string& id, const std::string& model);
  std::optional<std::string> find(const std::string& owner, const std::string& id) const;

 private:
  const Connection& connection_;
  const int64_t most_;
};

}  // namespace octavo::state
