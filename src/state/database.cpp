#include "state/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

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
    R"(
CREATE TABLE response_models(
  key INTEGER PRIMARY KEY AUTOINCREMENT, owner BLOB NOT NULL, id TEXT NOT NULL, model TEXT NOT NULL,
  UNIQUE(owner, id)))",
    "ALTER TABLE batches ADD COLUMN input_bytes INTEGER NOT NULL DEFAULT 0",
};

// The file holds prompts and answers of all users. SQLite gives its other files the same permissions.
void keep_private(const fs::path& file) {
  const int opened =
      ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (opened < 0) return;  // SQLite reports why
  ::fchmod(opened, 0600);
  ::close(opened);
}

std::string prepared_folder(const std::string& folder) {
  std::error_code error;
  const bool created = fs::create_directories(folder, error);
  if (!error && created) fs::permissions(folder, fs::perms::owner_all, error);
  if (error)
    throw SetupError(fmt::format("--state-dir {}: cannot create the folder: {}; choose another",
                                 folder, error.message()));
  const fs::path file = fs::path(folder) / "octavo.sqlite3";
  // Another user who may write to the folder must not choose the file.
  if (fs::is_symlink(fs::symlink_status(file, error)))
    throw SetupError(
        fmt::format("--state-dir: {} is a symbolic link; choose another folder", file.string()));
  keep_private(file);
  return file.string();
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

// The error says whether another process uses the file.
Connection open_once(const std::string& path) {
  Connection connection(path);
  prepare(connection);
  return connection;
}

Connection open_within(const std::string& path, std::chrono::milliseconds lock_timeout) {
  const auto deadline = std::chrono::steady_clock::now() + lock_timeout;
  while (true) {
    try {
      return open_once(path);
    } catch (const StateError& error) {
      if (error.fault() != StateFault::kInUse || std::chrono::steady_clock::now() >= deadline)
        throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Connection open(const std::string& folder, std::chrono::milliseconds lock_timeout) {
  const std::string path = prepared_folder(folder);
  try {
    return open_within(path, lock_timeout);
  } catch (const StateError& error) {
    throw SetupError(fmt::format("--state-dir: {}: {}", path, advice(error)));
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("--state-dir: {}: {}", path, error.what()));
  }
}

}  // namespace

int schema_version() { return static_cast<int>(kMigrations.size()); }

Database::Database(const std::string& folder, std::chrono::milliseconds lock_timeout)
    : connection_(open(folder, lock_timeout)) {}

int64_t Database::used_bytes() const {
  const int64_t pages =
      connection_.integer("PRAGMA page_count") - connection_.integer("PRAGMA freelist_count");
  return pages * connection_.integer("PRAGMA page_size");
}

}  // namespace octavo::state
