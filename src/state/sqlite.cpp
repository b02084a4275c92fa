#include "state/sqlite.h"

#include <sqlite3.h>

#include <new>
#include <utility>

#include "base/error.h"

namespace octavo::state {
namespace {

StateFault fault_of(int code) {
  switch (code & 0xff) {  // the rest tells variants apart
    case SQLITE_FULL:
      return StateFault::kFull;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return StateFault::kReadOnly;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return StateFault::kDamaged;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return StateFault::kInUse;
    default:
      return StateFault::kOther;
  }
}

void check_code(sqlite3* connection, int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  if (code == SQLITE_NOMEM) throw std::bad_alloc();
  throw StateError(fault_of(code),
                   connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code));
}

}  // namespace

Statement::Statement(sqlite3* connection, std::string_view sql) : connection_(connection) {
  check(sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &statement_,
                           nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_),
      statement_(std::exchange(other.statement_, nullptr)),
      bound_(other.bound_) {}

void Statement::check(int code) const { check_code(connection_, code); }

Statement& Statement::bind(int64_t value) {
  check(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

Statement& Statement::bind(std::optional<int64_t> value) {
  if (value) return bind(*value);
  check(sqlite3_bind_null(statement_, ++bound_));
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  check(sqlite3_bind_text64(statement_, ++bound_, text.data() != nullptr ? text.data() : "",
                            text.size(), SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_blob(std::string_view bytes) {
  check(sqlite3_bind_blob64(statement_, ++bound_, bytes.data() != nullptr ? bytes.data() : "",
                            bytes.size(), SQLITE_STATIC));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  check(code);
  return code == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::optional<int64_t> Statement::optional_integer(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
  return integer(column);
}

std::string Statement::text(int column) const {
  // The pointer first: it may convert the value, which changes the length.
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (bytes == nullptr || size <= 0) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

void Connection::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

Connection::Connection(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  connection_.reset(opened);
  check_code(opened, code);
}

int64_t Connection::integer(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Connection::text(std::string_view sql) const {
  Statement statement = prepare(sql);
  return statement.step() ? statement.text(0) : "";
}

int64_t Connection::changes() const { return sqlite3_changes(connection_.get()); }
int64_t Connection::last_key() const { return sqlite3_last_insert_rowid(connection_.get()); }

Transaction::Transaction(const Connection& connection) : connection_(connection) {
  connection_.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    connection_.run("ROLLBACK");
  } catch (const std::exception&) {
    // After some errors, such as a full disk, SQLite has already rolled it back.
    return;
  }
}

void Transaction::commit() {
  connection_.run("COMMIT");
  open_ = false;
}

}  // namespace octavo::state
