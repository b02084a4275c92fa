#include "server/batches/file_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/request_id.h"
#include "base/error.h"
#include "base/units.h"
#include "server/batches/unix_time.h"
#include "state/batch_table.h"

namespace octavo::server {
namespace {

constexpr size_t kMostFieldBytes = 1024;
constexpr size_t kLongestFilename = 255;

// Runs on the state thread.
void check_share(const state::Database& database, const StateOptions& options,
                 const state::FileRecord& file, size_t more_bytes, int parts) {
  if (parts == 1) return;
  const state::FileTable files(database);
  const int64_t bytes = files.bytes(file.owner) +
                        state::BatchTable(database).unfinished_bytes(file.owner) +
                        static_cast<int64_t>(more_bytes);
  if (bytes > options.max_bytes / parts)
    throw RequestError(413, "file",
                       fmt::format("the files and open batches of this API key would take more "
                                   "than {}, its part of --state-max-bytes; delete some files",
                                   format_bytes(static_cast<uint64_t>(options.max_bytes / parts))));
  if (files.count(file.owner) > options.max_files / parts)
    throw RequestError(413, "file",
                       fmt::format("this API key has {} files, which is its limit; delete some",
                                   options.max_files / parts));
}

// Runs on the state thread.
void check_space(const state::Database& database, const StateOptions& options) {
  if (database.used_bytes() + state::BatchTable(database).validating_bytes() > options.max_bytes)
    throw RequestError(413, "file",
                       fmt::format("files and batches already take {}; delete files, or start the "
                                   "server with a larger --state-max-bytes",
                                   format_bytes(static_cast<uint64_t>(options.max_bytes))));
  if (state::FileTable(database).count() > options.max_files)
    throw RequestError(
        413, "file",
        fmt::format("{} files are stored, which is the limit; delete some", options.max_files));
}

}  // namespace

FileUpload::FileUpload(PersistentState& state, std::string owner, int parts)
    : state_(state), parts_(parts) {
  file_.owner = std::move(owner);
  file_.id = "file-" + api::fresh_request_id();
  file_.created_at = unix_now();
}

FileUpload::~FileUpload() {
  if (file_.key == 0) return;
  state_.post([key = file_.key](const state::Database& database) {
    state::FileTable(database).discard(key);
  });
}

void FileUpload::begin_part(const std::string& name, const std::optional<std::string>& filename) {
  if (name != "file") {
    if (name != "purpose")
      throw RequestError(400, name, "is not a known field; a form has the fields file and purpose");
    field_ = &fields_[name];
    field_->clear();
    return;
  }
  if (std::exchange(has_file_, true)) throw RequestError(400, "file", "is there twice");
  field_ = nullptr;
  file_.filename = filename.value_or("").substr(0, kLongestFilename);
  if (file_.filename.empty()) file_.filename = "upload";
}

void FileUpload::add_data(std::string_view bytes) {
  if (field_ != nullptr) {
    if (field_->size() + bytes.size() > kMostFieldBytes)
      throw RequestError(400, "purpose", "is too long");
    *field_ += bytes;
    return;
  }
  file_.bytes += static_cast<int64_t>(bytes.size());
  if (file_.bytes > state_.options().max_file_bytes)
    throw RequestError(
        413, "file",
        fmt::format("a file has at most {}",
                    format_bytes(static_cast<uint64_t>(state_.options().max_file_bytes))));
  buffer_ += bytes;
}

Awaitable<void> FileUpload::store_chunk(std::string chunk) {
  const auto store = [file = file_, number = chunks_, chunk = std::move(chunk), parts = parts_,
                      options = state_.options()](const state::Database& database) {
    check_space(database, options);
    check_share(database, options, file, chunk.size(), parts);
    state::FileTable files(database);
    state::Transaction transaction(database.connection());
    const int64_t key = file.key != 0 ? file.key : files.begin(file);
    files.append(key, number, chunk);
    transaction.commit();
    return key;
  };
  file_.key = co_await state_.run(store);
  ++chunks_;
}

Awaitable<void> FileUpload::store() {
  while (buffer_.size() >= state::kChunkBytes) {
    std::string chunk = buffer_.substr(0, state::kChunkBytes);
    buffer_.erase(0, state::kChunkBytes);
    co_await store_chunk(std::move(chunk));
  }
}

Awaitable<state::FileRecord> FileUpload::finish() {
  if (!has_file_) throw RequestError(400, "file", "is missing");
  const auto purpose = fields_.find("purpose");
  if (purpose == fields_.end()) throw RequestError(400, "purpose", "is missing");
  if (purpose->second != "batch")
    throw RequestError(400, "purpose", "must be batch; files are used for batches only");
  file_.purpose = purpose->second;
  co_await store();
  std::string rest = std::exchange(buffer_, {});
  co_await store_chunk(std::move(rest));
  const auto conclude = [file = file_](const state::Database& database) {
    state::FileTable(database).finish(file.key, file.purpose, file.bytes);
    return true;
  };
  co_await state_.run(conclude);
  state::FileRecord stored = file_;
  file_.key = 0;  // it is kept
  co_return stored;
}

}  // namespace octavo::server
