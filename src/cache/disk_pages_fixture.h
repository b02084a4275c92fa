// disk_pages_fixture.h - for tests of the disk tier: pages whose bytes follow from their keys, and
// temporary folders. No MLX.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cache/disk_tier.h"

namespace octavo {

inline PageKey key_of(int number, int32_t part = 0) {
  PageKey key{.part = part};
  std::memcpy(key.block.data(), &number, sizeof(number));
  return key;
}

inline std::vector<std::byte> page_of(const PageKey& key, size_t bytes) {
  uint64_t word = PageKeyHash{}(key) | 1;
  std::vector<std::byte> page(bytes);
  for (std::byte& byte : page) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(word >> 56);
  }
  return page;
}

inline uint64_t bytes_on_disk(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) bytes += file.file_size();
  return bytes;
}

// Saves page `number` as the successor of page `parent`.
inline bool save_page(DiskTier& tier, int number, std::optional<int> parent = {}) {
  std::optional<PageKey> before;
  if (parent) before = key_of(*parent);
  return tier.save(key_of(number), before, [&](std::span<std::byte> to) {
    const auto page = page_of(key_of(number), to.size());
    std::ranges::copy(page, to.begin());
  });
}

// Reads the pages in order up to the first missing one. Returns how many were read, or -1 if one
// was wrong or none arrived for a minute.
inline int read_pages(DiskTier& tier, const std::vector<int>& numbers) {
  std::vector<PageKey> keys;
  for (int number : numbers) keys.push_back(key_of(number));
  const auto read = tier.read(keys);
  int came = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (came < static_cast<int>(keys.size()) && std::chrono::steady_clock::now() < deadline) {
    for (const auto& arrival : tier.take(*read)) {
      if (arrival.bytes.empty()) return came;
      if (arrival.bytes != page_of(keys[arrival.index], tier.page_bytes())) return -1;
      ++came;
    }
    std::this_thread::yield();
  }
  return came == static_cast<int>(keys.size()) ? came : -1;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "octavo-disk-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace octavo
