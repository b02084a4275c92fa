// database.h - the file with all state that survives a restart. One thread at a time. No MLX.
//
// SQLite in WAL mode, one writer: a commit is on disk when it returns, and a killed process leaves
// whole transactions.
#pragma once

#include <cstdint>
#include <string>

#include "state/sqlite.h"

namespace octavo::state {

class Database {
 public:
  // Creates the folder and the file, or brings an older file up to date. Throws SetupError if that
  // is not possible, if the file is damaged, of a newer version, or in use by another process.
  explicit Database(const std::string& folder);

  const Connection& connection() const { return connection_; }
  // Without pages that are free for later use.
  int64_t used_bytes() const;

 private:
  Connection connection_;
};

// The version that this program writes.
int schema_version();

}  // namespace octavo::state
