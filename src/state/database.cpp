#include "state/database.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/error.h"

namespace octavo::state {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kApplicationId = 0x4f435456;  // "OCTV"

// The statements that lead from one version to the next, separated by semicolons. A released
// entry is never changed.
constexpr std::array kMigrations = {
    R"(
CREATE TABLE files(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner BLOB NOT NULL,
  filename TEXT NOT NULL, purpose TEXT NOT NULL, bytes INTEGER NOT NULL, created_at INTEGER NOT NULL,
  complete INTEGER NOT NULL);
CREATE TABLE file_chunks(
  file INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(file, number));
CREATE TABLE batches(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner BLOB NOT NULL,
  endpoint TEXT NOT NULL, input_file TEXT NOT NULL, completion_window TEXT NOT NULL,
  metadata TEXT NOT NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL, in_progress_at INTEGER, finalizing_at INTEGER, completed_at INTEGER,
  failed_at INTEGER, expired_at INTEGER, cancelling_at INTEGER, cancelled_at INTEGER,
  total INTEGER NOT NULL DEFAULT 0, completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0, output_file TEXT NOT NULL DEFAULT '',
  error_file TEXT NOT NULL DEFAULT '', errors TEXT NOT NULL DEFAULT '');
CREATE TABLE batch_lines(
  batch INTEGER NOT NULL, line INTEGER NOT NULL, custom_id TEXT NOT NULL, outcome INTEGER NOT NULL,
  text BLOB NOT NULL, PRIMARY KEY(batch, line));
CREATE UNIQUE INDEX batch_lines_by_custom_id ON batch_lines(batch, custom_id);
CREATE TABLE responses(
  serial INTEGER PRIMARY KEY, owner BLOB NOT NULL, id TEXT NOT NULL, previous_id TEXT NOT NULL,
  previous_serial INTEGER NOT NULL, object BLOB NOT NULL, input BLOB NOT NULL, UNIQUE(owner, id)))",
};

std::string prepared_folder(const std::string& folder) {
  std::error_code error;
  const bool created = fs::create_directories(folder, error);
  if (!error && created) fs::permissions(folder, fs::perms::owner_all, error);
  if (error)
    throw SetupError(fmt::format("--state-dir {}: cannot create the folder: {}; choose another",
                                 folder, error.message()));
  return (fs::path(folder) / "octavo.sqlite3").string();
}

void run_all(const Connection& connection, std::string_view statements) {
  while (!statements.empty()) {
    const size_t end = statements.find(';');
    connection.run(statements.substr(0, end));
    statements.remove_prefix(end == std::string_view::npos ? statements.size() : end + 1);
  }
}

void migrate(const Connection& connection) {
  const int64_t version = connection.integer("PRAGMA user_version");
  const int64_t application = connection.integer("PRAGMA application_id");
  const int64_t tables = connection.integer("SELECT count(*) FROM sqlite_schema");
  if (application != kApplicationId && (version != 0 || tables != 0))
    throw SetupError("the file was not written by Octavo; choose another folder");
  if (version > schema_version())
    throw SetupError(
        fmt::format("the file has version {}, which a newer Octavo wrote; this one reads up to {}: "
                    "update Octavo, or choose another folder",
                    version, schema_version()));
  for (auto next = static_cast<size_t>(version); next < kMigrations.size(); ++next) {
    Transaction transaction(connection);
    run_all(connection, kMigrations[next]);
    connection.run(fmt::format("PRAGMA application_id = {}", kApplicationId));
    connection.run(fmt::format("PRAGMA user_version = {}", next + 1));
    transaction.commit();
  }
}

void prepare(const Connection& connection) {
  // Exclusive, so that a second process fails to open the file instead of sharing it.
  connection.text("PRAGMA locking_mode = EXCLUSIVE");
  if (connection.text("PRAGMA journal_mode = WAL") != "wal")
    throw SetupError("the file system does not support SQLite's WAL mode; choose another folder");
  connection.run("PRAGMA synchronous = FULL");
  // The lock is taken by the first write.
  Transaction(connection).commit();
  const std::string found = connection.text("PRAGMA quick_check(1)");
  if (found != "ok") throw StateError(StateFault::kDamaged, found);
  migrate(connection);
}

std::string advice(const StateError& error) {
  switch (error.fault()) {
    case StateFault::kDamaged:
      return fmt::format("the file is damaged ({}); restore it from a backup, or move it away",
                         error.what());
    case StateFault::kInUse:
      return "another process uses it; stop that one, or choose another folder";
    case StateFault::kReadOnly:
      return fmt::format("no permission to write ({}); choose another folder", error.what());
    case StateFault::kFull:
      return "the disk is full; free some space, or choose another folder";
    case StateFault::kOther:
      break;
  }
  return error.what();
}

Connection open(const std::string& folder) {
  const std::string path = prepared_folder(folder);
  try {
    Connection connection(path);
    prepare(connection);
    return connection;
  } catch (const StateError& error) {
    throw SetupError(fmt::format("--state-dir: {}: {}", path, advice(error)));
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("--state-dir: {}: {}", path, error.what()));
  }
}

}  // namespace

int schema_version() { return static_cast<int>(kMigrations.size()); }

Database::Database(const std::string& folder) : connection_(open(folder)) {}

int64_t Database::used_bytes() const {
  const int64_t pages =
      connection_.integer("PRAGMA page_count") - connection_.integer("PRAGMA freelist_count");
  return pages * connection_.integer("PRAGMA page_size");
}

}  // namespace octavo::state
