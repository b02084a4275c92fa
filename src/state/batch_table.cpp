#include "state/batch_table.h"

#include "base/error.h"

namespace octavo::state {
namespace {

constexpr std::string_view kBatchColumns =
    "SELECT key, id, owner, endpoint, input_file, completion_window, metadata, status, created_at,"
    " expires_at, in_progress_at, finalizing_at, completed_at, failed_at, expired_at,"
    " cancelling_at, cancelled_at, total, completed, failed, output_file, error_file, errors,"
    " input_bytes"
    " FROM batches ";
constexpr std::string_view kUnfinished =
    "(status IN ('validating', 'in_progress', 'finalizing', 'cancelling'))";

BatchRecord batch_of(const Statement& row) {
  return {.key = row.integer(0),
          .id = row.text(1),
          .owner = row.text(2),
          .endpoint = row.text(3),
          .input_file = row.text(4),
          .completion_window = row.text(5),
          .metadata = row.text(6),
          .status = row.text(7),
          .created_at = row.integer(8),
          .expires_at = row.integer(9),
          .input_bytes = row.integer(23),
          .in_progress_at = row.optional_integer(10),
          .finalizing_at = row.optional_integer(11),
          .completed_at = row.optional_integer(12),
          .failed_at = row.optional_integer(13),
          .expired_at = row.optional_integer(14),
          .cancelling_at = row.optional_integer(15),
          .cancelled_at = row.optional_integer(16),
          .total = row.integer(17),
          .completed = row.integer(18),
          .failed = row.integer(19),
          .output_file = row.text(20),
          .error_file = row.text(21),
          .errors = row.text(22)};
}

std::vector<BatchRecord> batches_of(Statement& rows) {
  std::vector<BatchRecord> batches;
  while (rows.step()) batches.push_back(batch_of(rows));
  return batches;
}

}  // namespace

void BatchTable::create(BatchRecord& batch) {
  connection_
      .prepare(
          "INSERT INTO batches(id, owner, endpoint, input_file, completion_window, metadata, "
          "status,"
          " created_at, expires_at, input_bytes) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(batch.id)
      .bind_blob(batch.owner)
      .bind(batch.endpoint)
      .bind(batch.input_file)
      .bind(batch.completion_window)
      .bind(batch.metadata)
      .bind(batch.status)
      .bind(batch.created_at)
      .bind(batch.expires_at)
      .bind(batch.input_bytes)
      .run();
  batch.key = connection_.last_key();
}

std::optional<BatchRecord> BatchTable::find(std::string_view owner, std::string_view id) const {
  Statement found = connection_.prepare(std::string(kBatchColumns) + "WHERE id = ? AND owner = ?");
  if (!found.bind(id).bind_blob(owner).step()) return std::nullopt;
  return batch_of(found);
}

std::vector<BatchRecord> BatchTable::list(std::string_view owner, const Page& page) const {
  Statement rows = connection_.prepare(
      std::string(kBatchColumns) +
      "WHERE owner = ? AND (? = '' OR key < (SELECT key FROM batches WHERE id = ?))"
      " ORDER BY key DESC LIMIT ?");
  rows.bind_blob(owner).bind(page.after).bind(page.after).bind(int64_t{page.limit} + 1);
  return batches_of(rows);
}

std::vector<BatchRecord> BatchTable::unfinished() const {
  Statement rows = connection_.prepare(std::string(kBatchColumns) + "WHERE " +
                                       std::string(kUnfinished) + " ORDER BY key");
  return batches_of(rows);
}

int64_t BatchTable::count() const { return connection_.integer("SELECT count(*) FROM batches"); }

int64_t BatchTable::unfinished_count() const {
  return connection_.integer("SELECT count(*) FROM batches WHERE " + std::string(kUnfinished));
}

int64_t BatchTable::unfinished_count(std::string_view owner) const {
  Statement found = connection_.prepare("SELECT count(*) FROM batches WHERE owner = ? AND " +
                                        std::string(kUnfinished));
  return found.bind_blob(owner).step() ? found.integer(0) : 0;
}

int64_t BatchTable::unfinished_bytes(std::string_view owner) const {
  Statement found =
      connection_.prepare("SELECT coalesce(sum(input_bytes), 0) FROM batches WHERE owner = ? AND " +
                          std::string(kUnfinished));
  return found.bind_blob(owner).step() ? found.integer(0) : 0;
}

int64_t BatchTable::validating_bytes() const {
  return connection_.integer(
      "SELECT coalesce(sum(input_bytes), 0) FROM batches WHERE status = 'validating'");
}

bool BatchTable::forget_one() {
  const std::string ended = " WHERE NOT " + std::string(kUnfinished);
  connection_.run("DELETE FROM batches WHERE key = (SELECT min(key) FROM batches" + ended +
                  " AND owner = (SELECT owner FROM batches" + ended +
                  " GROUP BY owner ORDER BY count(*) DESC, min(key) LIMIT 1))");
  return connection_.changes() == 1;
}

void BatchTable::set_status(int64_t key, std::string_view status, int64_t now) {
  // Every status but the first has a column of that name for its time.
  const std::string column = std::string(status) + "_at";
  connection_.prepare("UPDATE batches SET status = ?, " + column + " = ? WHERE key = ?")
      .bind(status)
      .bind(now)
      .bind(key)
      .run();
}

void BatchTable::fail(int64_t key, std::string_view errors, int64_t now) {
  Transaction transaction(connection_);
  drop_lines(key);
  connection_.prepare("UPDATE batches SET errors = ? WHERE key = ?").bind(errors).bind(key).run();
  set_status(key, "failed", now);
  transaction.commit();
}

bool BatchTable::cancel(int64_t key, int64_t now) {
  connection_
      .prepare(
          "UPDATE batches SET status = 'cancelling', cancelling_at = ?"
          " WHERE key = ? AND status IN ('validating', 'in_progress')")
      .bind(now)
      .bind(key)
      .run();
  return connection_.changes() == 1;
}

void BatchTable::drop_lines(int64_t key) {
  connection_.prepare("DELETE FROM batch_lines WHERE batch = ?").bind(key).run();
}

bool BatchTable::add_line(int64_t key, const BatchLine& line) {
  connection_.prepare("INSERT OR IGNORE INTO batch_lines VALUES(?, ?, ?, 0, ?)")
      .bind(key)
      .bind(line.line)
      .bind(line.custom_id)
      .bind_blob(line.request)
      .run();
  return connection_.changes() == 1;
}

void BatchTable::begin(int64_t key, int64_t total, int64_t now) {
  Transaction transaction(connection_);
  connection_.prepare("UPDATE batches SET total = ? WHERE key = ?").bind(total).bind(key).run();
  connection_
      .prepare(
          "UPDATE batches SET status = 'in_progress', in_progress_at = ?"
          " WHERE key = ? AND status = 'validating'")
      .bind(now)
      .bind(key)
      .run();
  transaction.commit();
}

std::optional<BatchLine> BatchTable::next_line(int64_t key, int64_t line) const {
  Statement found = connection_.prepare(
      "SELECT line, custom_id, length(text) FROM batch_lines"
      " WHERE batch = ? AND line > ? AND outcome = 0 ORDER BY line LIMIT 1");
  if (!found.bind(key).bind(line).step()) return std::nullopt;
  return BatchLine{.line = found.integer(0), .custom_id = found.text(1), .bytes = found.integer(2)};
}

std::optional<std::string> BatchTable::request_of(int64_t key, int64_t line) const {
  Statement found = connection_.prepare(
      "SELECT text FROM batch_lines WHERE batch = ? AND line = ? AND outcome = 0");
  if (!found.bind(key).bind(line).step()) return std::nullopt;
  return found.text(0);
}

bool BatchTable::answer(int64_t key, int64_t line, LineOutcome outcome, std::string_view text) {
  OCTAVO_CHECK(outcome != LineOutcome::kNone);
  Transaction transaction(connection_);
  connection_
      .prepare(
          "UPDATE batch_lines SET outcome = ?, text = ? WHERE batch = ? AND line = ? AND outcome = "
          "0")
      .bind(static_cast<int64_t>(outcome))
      .bind_blob(text)
      .bind(key)
      .bind(line)
      .run();
  if (connection_.changes() != 1) return false;
  const char* column = outcome == LineOutcome::kCompleted ? "completed" : "failed";
  connection_
      .prepare(std::string("UPDATE batches SET ") + column + " = " + column + " + 1 WHERE key = ?")
      .bind(key)
      .run();
  transaction.commit();
  return true;
}

void BatchTable::end(int64_t key, std::string_view status, const BatchFiles& files, int64_t now) {
  Transaction transaction(connection_);
  FileWriter output(files_, files.output);
  FileWriter errors(files_, files.errors);
  Statement rows = connection_.prepare(
      "SELECT outcome, custom_id, text FROM batch_lines WHERE batch = ? ORDER BY line");
  rows.bind(key);
  while (rows.step()) {
    const auto outcome = static_cast<LineOutcome>(rows.integer(0));
    FileWriter& file = outcome == LineOutcome::kCompleted ? output : errors;
    file.add(outcome == LineOutcome::kNone ? files.unanswered(rows.text(1)) : rows.text(2));
    file.add("\n");
  }
  connection_.prepare("UPDATE batches SET output_file = ?, error_file = ? WHERE key = ?")
      .bind(output.finish())
      .bind(errors.finish())
      .bind(key)
      .run();
  drop_lines(key);
  set_status(key, status, now);
  transaction.commit();
}

}  // namespace octavo::state
