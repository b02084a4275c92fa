// mapped_file.h - a whole file mapped read-only. Safe to read from any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/mapping_watch.h"

namespace octavo {

class MappedFile {
 public:
  // Throws SetupError if the file cannot be opened, is not a regular file, or cannot be mapped.
  // An empty file gives an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // If the file becomes shorter, the bytes after its new end are zeros.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Throws SetupError if bytes that were read could not be read from the file. To be called after
  // reading.
  void check() const;
  const std::filesystem::path& path() const { return path_; }

  // Tells the kernel that `part` (within bytes()) will not be read again, so that its pages leave
  // this process's resident memory. Reading it again is still allowed.
  void release(std::span<const std::byte> part) const;

 private:
  void unmap() noexcept;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappingWatch watch_;
};

// Returns the content of a small text file. Throws SetupError if it cannot be read or has more than
// `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, size_t limit = 256u << 20);

}  // namespace octavo
