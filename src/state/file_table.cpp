#include "state/file_table.h"

#include <utility>

namespace octavo::state {
namespace {

FileRecord file_of(const Statement& row) {
  return {.key = row.integer(0),
          .id = row.text(1),
          .owner = row.text(2),
          .filename = row.text(3),
          .purpose = row.text(4),
          .bytes = row.integer(5),
          .created_at = row.integer(6)};
}

constexpr std::string_view kFileColumns =
    "SELECT key, id, owner, filename, purpose, bytes, created_at FROM files ";

}  // namespace

int64_t FileTable::begin(const FileRecord& file) {
  connection_
      .prepare(
          "INSERT INTO files(id, owner, filename, purpose, bytes, created_at, complete)"
          " VALUES(?, ?, ?, ?, 0, ?, 0)")
      .bind(file.id)
      .bind_blob(file.owner)
      .bind(file.filename)
      .bind(file.purpose)
      .bind(file.created_at)
      .run();
  return connection_.last_key();
}

void FileTable::append(int64_t key, int64_t number, std::string_view data) {
  connection_.prepare("INSERT INTO file_chunks VALUES(?, ?, ?)")
      .bind(key)
      .bind(number)
      .bind_blob(data)
      .run();
  connection_.prepare("UPDATE files SET bytes = bytes + ? WHERE key = ?")
      .bind(static_cast<int64_t>(data.size()))
      .bind(key)
      .run();
}

void FileTable::finish(int64_t key, std::string_view purpose, int64_t bytes) {
  connection_.prepare("UPDATE files SET complete = 1, purpose = ?, bytes = ? WHERE key = ?")
      .bind(purpose)
      .bind(bytes)
      .bind(key)
      .run();
}

void FileTable::discard(int64_t key) {
  Transaction transaction(connection_);
  connection_.prepare("DELETE FROM file_chunks WHERE file = ?").bind(key).run();
  connection_.prepare("DELETE FROM files WHERE key = ?").bind(key).run();
  transaction.commit();
}

void FileTable::discard_unfinished() {
  Transaction transaction(connection_);
  connection_.run(
      "DELETE FROM file_chunks WHERE file IN (SELECT key FROM files WHERE complete = 0)");
  connection_.run("DELETE FROM files WHERE complete = 0");
  transaction.commit();
}

std::optional<FileRecord> FileTable::find(std::string_view owner, std::string_view id) const {
  Statement found = connection_.prepare(std::string(kFileColumns) +
                                        "WHERE id = ? AND owner = ? AND complete = 1");
  if (!found.bind(id).bind_blob(owner).step()) return std::nullopt;
  return file_of(found);
}

std::vector<FileRecord> FileTable::list(std::string_view owner, std::string_view purpose,
                                        const Page& page) const {
  const std::string order = page.oldest_first ? "ORDER BY key" : "ORDER BY key DESC";
  const std::string next = page.oldest_first ? "key > " : "key < ";
  Statement rows = connection_.prepare(
      std::string(kFileColumns) +
      "WHERE owner = ? AND complete = 1 AND (? = '' OR purpose = ?) AND (? = '' OR " + next +
      "(SELECT key FROM files WHERE id = ?)) " + order + " LIMIT ?");
  rows.bind_blob(owner).bind(purpose).bind(purpose).bind(page.after).bind(page.after);
  rows.bind(int64_t{page.limit} + 1);
  std::vector<FileRecord> files;
  while (rows.step()) files.push_back(file_of(rows));
  return files;
}

std::optional<std::string> FileTable::chunk(int64_t key, int64_t number) const {
  Statement found =
      connection_.prepare("SELECT data FROM file_chunks WHERE file = ? AND number = ?");
  if (!found.bind(key).bind(number).step()) return std::nullopt;
  return found.text(0);
}

int64_t FileTable::count() const { return connection_.integer("SELECT count(*) FROM files"); }

int64_t FileTable::count(std::string_view owner) const {
  Statement found = connection_.prepare("SELECT count(*) FROM files WHERE owner = ?");
  return found.bind_blob(owner).step() ? found.integer(0) : 0;
}

int64_t FileTable::bytes(std::string_view owner) const {
  Statement found =
      connection_.prepare("SELECT coalesce(sum(bytes), 0) FROM files WHERE owner = ?");
  return found.bind_blob(owner).step() ? found.integer(0) : 0;
}

void FileWriter::add(std::string_view text) {
  if (file_.key == 0) file_.key = files_.begin(file_);
  buffer_ += text;
  file_.bytes += static_cast<int64_t>(text.size());
  if (buffer_.size() >= kChunkBytes) flush();
}

void FileWriter::flush() {
  if (!buffer_.empty()) files_.append(file_.key, chunks_++, buffer_);
  buffer_.clear();
}

std::string FileWriter::finish() {
  if (file_.key == 0) return {};
  flush();
  files_.finish(file_.key, file_.purpose, file_.bytes);
  return file_.id;
}

}  // namespace octavo::state
