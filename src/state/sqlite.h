// sqlite.h - a SQLite connection whose functions throw. One thread at a time. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace octavo::state {

enum class StateFault : uint8_t {
  kFull,      // the disk, or a limit of the file's size
  kReadOnly,  // or no permission
  kDamaged,   // not a database, or a damaged one
  kInUse,     // by another process
  kOther,
};

class StateError : public std::runtime_error {
 public:
  StateError(StateFault fault, const std::string& message)
      : std::runtime_error(message), fault_(fault) {}
  StateFault fault() const { return fault_; }

 private:
  StateFault fault_;
};

// Values are bound in order, from the first question mark on.
class Statement {
 public:
  Statement(sqlite3* connection, std::string_view sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int64_t value);
  Statement& bind(std::optional<int64_t> value);
  // The text must stay valid until the statement has run.
  Statement& bind(std::string_view text);
  Statement& bind_blob(std::string_view bytes);

  // True if there is a row; its columns are valid until the next step.
  bool step();
  // For statements without rows.
  void run();

  int64_t integer(int column) const;
  std::optional<int64_t> optional_integer(int column) const;
  std::string text(int column) const;  // of a text or a blob; empty if null

 private:
  void check(int code) const;

  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

class Connection {
 public:
  // Creates the file if there is none.
  explicit Connection(const std::string& path);

  Statement prepare(std::string_view sql) const { return {connection_.get(), sql}; }
  void run(std::string_view sql) const { prepare(sql).run(); }
  // The first column of the first row.
  int64_t integer(std::string_view sql) const;
  std::string text(std::string_view sql) const;
  // Of the last statement.
  int64_t changes() const;
  int64_t last_key() const;

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::unique_ptr<sqlite3, Close> connection_;
};

// Undone unless commit() is called.
class Transaction {
 public:
  explicit Transaction(const Connection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  const Connection& connection_;
  bool open_ = true;
};

}  // namespace octavo::state
