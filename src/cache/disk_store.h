// disk_store.h - pages in files: slots of equal size, checksummed, never more bytes than allowed.
// No MLX. One thread at a time; one process per folder.
//
// A model has two files: NAME.pages, whose slots hold pages, and NAME.index, whose entries say what
// is in the slots. A page is written before its entry, and an entry is emptied before its slot is
// written again. Nothing is synced: what a power cut leaves half-written fails its checksum and
// is dropped when it is read.
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
  std::string fingerprint;  // of all that decides a page's bytes besides its key
  size_t page_bytes = 0;
  uint64_t most_bytes = 0;  // that the folder's files may take, those of other models included
};

// A file descriptor that is closed when it dies.
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
  // Opens the model's files, or makes them. Nothing when another process has the folder. Throws
  // SetupError naming the flag when the folder cannot be used or is allowed not one page.
  static std::unique_ptr<DiskStore> open(const DiskStoreOptions& options);

  // What the files held when they were opened: slots and what is in them. Once.
  std::vector<std::pair<int, DiskRecord>> take_records() { return std::exchange(records_, {}); }

  // Slots there may be, with what other models' files take.
  int most_slots() const;
  // Deletes the files of the model that was used longest ago. False: there are only our own.
  bool drop_other_model();

  // False when the disk would not; error() tells. The slot then holds nothing.
  bool write(int slot, DiskRecord& record, std::span<const std::byte> page);
  // False unless every byte is as it was written.
  bool read(int slot, const DiskRecord& record, std::span<std::byte> page) const;
  // The slot's content cannot be found by those who open the files later.
  void erase(int slot);
  void clear();

  const std::string& error() const { return error_; }
  // Bytes of all our files in the folder, as the disk counts them.
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
  int slots_ = 0;  // that the files have room for so far
  std::vector<OtherModel> others_;
  std::vector<std::pair<int, DiskRecord>> records_;
  std::string error_;
};

}  // namespace octavo
