// batch_table.h - batches and their lines. One thread at a time. No MLX.
//
// A line is answered in the transaction that stores its answer, so after a crash every line is
// either answered or runs again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "state/file_table.h"

namespace octavo::state {

struct BatchRecord {
  int64_t key = 0;  // set by create()
  std::string id = {};
  std::string owner = {};
  std::string endpoint = {};
  std::string input_file = {};
  std::string completion_window = {};
  std::string metadata = {};  // JSON
  std::string status = "validating";
  int64_t created_at = 0;  // Unix seconds, as all times
  int64_t expires_at = 0;
  int64_t input_bytes = 0;  // of the input file, which may be deleted before its lines
  std::optional<int64_t> in_progress_at = {}, finalizing_at = {}, completed_at = {}, failed_at = {},
                         expired_at = {}, cancelling_at = {}, cancelled_at = {};
  int64_t total = 0, completed = 0, failed = 0;   // lines
  std::string output_file = {}, error_file = {};  // ids; empty: none
  std::string errors = {};                        // JSON; empty: none
};

struct BatchLine {
  int64_t line = 0;  // in the order of the input, from 1
  std::string custom_id = {};
  std::string request = {};  // JSON
  int64_t bytes = 0;         // of the request, set by next_line()
};

enum class LineOutcome : uint8_t { kNone = 0, kCompleted = 1, kFailed = 2 };

// The files of an ended batch.
struct BatchFiles {
  FileRecord output;
  FileRecord errors;
  // The text of a line that was not answered.
  std::function<std::string(const std::string& custom_id)> unanswered = nullptr;
};

class BatchTable {
 public:
  explicit BatchTable(const Database& database)
      : connection_(database.connection()), files_(database) {}

  void create(BatchRecord& batch);
  std::optional<BatchRecord> find(std::string_view owner, std::string_view id) const;
  // Newest first. One more than the limit, if there are more.
  std::vector<BatchRecord> list(std::string_view owner, const Page& page) const;
  // All that have not ended, oldest first.
  std::vector<BatchRecord> unfinished() const;
  int64_t count() const;
  int64_t unfinished_count() const;
  int64_t unfinished_count(std::string_view owner) const;
  // Bytes of the inputs of an owner's batches that have not ended: about those of their lines.
  int64_t unfinished_bytes(std::string_view owner) const;
  // Of all batches whose lines are not all stored yet.
  int64_t validating_bytes() const;
  // Forgets the oldest ended batch of the owner who has most of them. Its files stay. False if no
  // batch has ended.
  bool forget_one();

  // Also sets the time of that status.
  void set_status(int64_t key, std::string_view status, int64_t now);
  // Ends a batch whose input is not valid.
  void fail(int64_t key, std::string_view errors, int64_t now);
  // False if the batch has ended or is being finalized.
  bool cancel(int64_t key, int64_t now);

  void drop_lines(int64_t key);
  // False if the batch has a line with that custom_id.
  bool add_line(int64_t key, const BatchLine& line);
  // After all lines were added. A batch that was cancelled meanwhile keeps its status.
  void begin(int64_t key, int64_t total, int64_t now);
  // The first line after `line` that is not answered, without its request, which may be long.
  std::optional<BatchLine> next_line(int64_t key, int64_t line) const;
  // Of a line that is not answered.
  std::optional<std::string> request_of(int64_t key, int64_t line) const;
  // False if the line was answered before; then nothing changes.
  bool answer(int64_t key, int64_t line, LineOutcome outcome, std::string_view text);
  // Writes the answers to files in the order of the input, and gives the batch its last status.
  void end(int64_t key, std::string_view status, const BatchFiles& files, int64_t now);

 private:
  const Connection& connection_;
  FileTable files_;
};

}  // namespace octavo::state
