// file_table.h - uploaded and generated files, in chunks. One thread at a time. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "state/database.h"

namespace octavo::state {

inline constexpr size_t kChunkBytes = 1u << 20;

struct FileRecord {
  int64_t key = 0;  // set by begin()
  std::string id = {};
  std::string owner = {};
  std::string filename = {};
  std::string purpose = {};
  int64_t bytes = 0;
  int64_t created_at = 0;  // Unix seconds
};

// A part of a list, newest first unless `oldest_first`.
struct Page {
  int limit = 20;
  std::string after = {};  // the id of the last item of the previous part; empty: the first part
  bool oldest_first = false;
};

class FileTable {
 public:
  explicit FileTable(const Database& database) : connection_(database.connection()) {}

  // The file is not found until finish(). Returns its key.
  int64_t begin(const FileRecord& file);
  // Chunks are numbered from 0.
  void append(int64_t key, int64_t number, std::string_view data);
  void finish(int64_t key, std::string_view purpose, int64_t bytes);
  // With all chunks.
  void discard(int64_t key);
  // Discards the files of uploads that a restart interrupted.
  void discard_unfinished();

  std::optional<FileRecord> find(std::string_view owner, std::string_view id) const;
  // `purpose`: empty: any. One more than the limit, if there are more.
  std::vector<FileRecord> list(std::string_view owner, std::string_view purpose,
                               const Page& page) const;
  // Nothing after the last chunk.
  std::optional<std::string> chunk(int64_t key, int64_t number) const;
  int64_t count() const;
  int64_t count(std::string_view owner) const;
  // Of all files of an owner, and of what has arrived of uploads.
  int64_t bytes(std::string_view owner) const;

 private:
  const Connection& connection_;
};

// Writes a file in chunks of kChunkBytes, or nothing if nothing is added. Within a transaction.
class FileWriter {
 public:
  FileWriter(FileTable& files, FileRecord file) : files_(files), file_(std::move(file)) {}
  void add(std::string_view text);
  // The file's id; empty if there is no file.
  std::string finish();

 private:
  void flush();
  FileTable& files_;
  FileRecord file_;
  std::string buffer_ = {};
  int64_t chunks_ = 0;
};

}  // namespace octavo::state
