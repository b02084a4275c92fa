// file_upload.h - stores an uploaded form with one file. I/O thread only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "server/http/multipart.h"
#include "server/persistent_state.h"
#include "state/file_table.h"

namespace octavo::server {

// The file is discarded unless finish() succeeds.
class FileUpload : public MultipartSink {
 public:
  // `parts`: state_parts().
  FileUpload(PersistentState& state, std::string owner, int parts);
  ~FileUpload() override;
  FileUpload(const FileUpload&) = delete;
  FileUpload& operator=(const FileUpload&) = delete;

  void begin_part(const std::string& name, const std::optional<std::string>& filename) override;
  void add_data(std::string_view bytes) override;

  // Between parts of the body: stores what has been read. Throws RequestError if a limit is
  // reached.
  Awaitable<void> store();
  // After the whole body. Throws RequestError if the form is not a valid upload.
  Awaitable<state::FileRecord> finish();

 private:
  Awaitable<void> store_chunk(std::string chunk);

  PersistentState& state_;
  const int parts_;
  state::FileRecord file_;
  std::map<std::string, std::string> fields_;
  std::string* field_ = nullptr;  // the part being read; null: the file
  bool has_file_ = false;
  std::string buffer_;
  int64_t chunks_ = 0;
};

}  // namespace octavo::server
