// disk_store.h - pages in files: checksummed slots of equal size, within a size limit. No MLX. One
// thread at a time; one process per folder.
//
// A model has two files: NAME.pages with the slots, and NAME.index with one entry per slot. A page
// is written before its entry, and an entry is cleared before its slot is overwritten. Nothing is
// synced: a page that a power failure left incomplete fails its checksum and is dropped when it is
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/disk_index.h"

namespace octavo {

struct DiskStoreOptions {
  std::filesystem::path folder;
  std::string fingerprint;  // of everything besides the key that determines a page's bytes
  size_t page_bytes = 0;
  uint64_t most_bytes = 0;  // limit for all files in the folder, including those of other models
};

// Owns a file descriptor.
class DiskFile {
 public:
  DiskFile() = default;
  explicit DiskFile(int fd) : fd_(fd) {}
  DiskFile(DiskFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DiskFile& operator=(DiskFile&& other) noexcept;
  ~DiskFile();

  int fd() const { return fd_; }
  bool write(uint64_t offset, std::span<const std::byte> bytes) const;
  bool read(uint64_t offset, std::span<std::byte> bytes) const;

 private:
  int fd_ = -1;
};

class DiskStore {
 public:
  // Opens or creates the model's files. Null if another process has locked the folder. Throws
  // SetupError that names the flag if the folder cannot be used or the limit is below one page.
  static std::unique_ptr<DiskStore> open(const DiskStoreOptions& options);

  // The slots and records found when the files were opened. Call once.
  std::vector<std::pair<int, DiskRecord>> take_records() { return std::exchange(records_, {}); }

  // Number of slots allowed, given the size of other models' files.
  int most_slots() const;
  // Deletes the files of the least recently used other model. False if there is none.
  bool drop_other_model();

  // False on a write error, see error(); the slot is then empty.
  bool write(int slot, DiskRecord& record, std::span<const std::byte> page);
  // False unless the checksums match.
  bool read(int slot, const DiskRecord& record, std::span<std::byte> page) const;
  // Clears the slot's entry, so that it is not found when the files are opened again.
  void erase(int slot);
  void clear();

  const std::string& error() const { return error_; }
  // Disk usage of all store files in the folder.
  uint64_t bytes() const;

 private:
  struct OtherModel {
    std::filesystem::path stem;
    uint64_t bytes;
    std::filesystem::file_time_type used;
  };

  DiskStore(DiskStoreOptions options, DiskFile lock);
  void find_other_models();
  void open_files();
  bool header_fits() const;
  bool write_header();
  void scan();
  void fail(const char* what);

  DiskStoreOptions options_;
  uint64_t slot_bytes_;
  std::filesystem::path stem_;
  DiskFile lock_;
  DiskFile pages_;
  DiskFile index_;
  int slots_ = 0;  // current size of the files
  std::vector<OtherModel> others_;
  std::vector<std::pair<int, DiskRecord>> records_;
  std::string error_;
};

}  // namespace octavo
