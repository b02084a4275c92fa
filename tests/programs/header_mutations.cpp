// header_mutations FILE.gguf [--count N] [--seed N] - changes one to four bytes of the file's header
// N times, half of the time in its metadata, and reads the file as `octavo info` does. Every change
// has to be accepted or refused with a SetupError; a sanitizer or a crash reports anything else.
// Prints how many were refused.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/format/checkpoint.h"
#include "models/model_description.h"
#include "models/tensor_check.h"

namespace octavo {
namespace {

// Changes bytes of a file in place and restores them, because a model is much larger than its header.
class DamagedFile {
 public:
  explicit DamagedFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (descriptor_ < 0) throw SetupError(path + ": cannot be opened for writing");
    const Checkpoint checkpoint = Checkpoint::open(path);
    header_.resize(header_bytes(checkpoint));
    if (::pread(descriptor_, header_.data(), header_.size(), 0) !=
        static_cast<ssize_t>(header_.size()))
      throw SetupError(path + ": cannot be read");
    keys_bytes_ = std::min(header_.find(checkpoint.tensors().front().name), header_.size());
  }
  ~DamagedFile() { ::close(descriptor_); }
  DamagedFile(const DamagedFile&) = delete;
  DamagedFile& operator=(const DamagedFile&) = delete;

  void damage(std::mt19937& random) {
    // The tensors' names are most of the header, and a changed name is always refused.
    const size_t among = random() % 2 != 0 ? keys_bytes_ : header_.size();
    for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % among;
      // Half of them single bits: near misses of valid numbers.
      const auto byte = static_cast<char>(
          random() % 2 != 0 ? random() : static_cast<uint32_t>(header_[at]) ^ (1u << random() % 8));
      write(at, byte);
      changed_.push_back(at);
    }
  }
  void restore() {
    for (const size_t at : changed_) write(at, header_[at]);
    changed_.clear();
  }

 private:
  // The header, and as many of the bytes after it as align the tensors.
  static size_t header_bytes(const Checkpoint& checkpoint) {
    uint64_t data = 0;
    for (const TensorView& tensor : checkpoint.tensors()) data += tensor.bytes.size();
    return static_cast<size_t>(checkpoint.file_bytes() - std::min(data, checkpoint.file_bytes()));
  }
  void write(size_t at, char byte) const {
    if (::pwrite(descriptor_, &byte, 1, static_cast<off_t>(at)) != 1)
      throw SetupError(path_ + ": cannot be written");
  }

  std::string path_;
  int descriptor_;
  std::string header_;
  size_t keys_bytes_ = 0;
  std::vector<size_t> changed_;
};

// Throws SetupError if the file is refused.
void read_model(const std::string& path) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  check_tensors(checkpoint, describe_model(checkpoint, std::nullopt));
}

int run(const std::string& path, int count, uint32_t seed) {
  read_model(path);
  DamagedFile file(path);
  std::mt19937 random(seed);
  int refused = 0;
  for (int round = 0; round < count; ++round) {
    file.damage(random);
    try {
      read_model(path);
    } catch (const SetupError&) {
      ++refused;
    }
    file.restore();
  }
  fmt::print("{} of {} refused\n", refused, count);
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  CLI::App app("Reads a GGUF file with a damaged header");
  std::string path;
  int count = 20000;
  uint32_t seed = 1;
  app.add_option("FILE", path, "Changed in place")->required();
  app.add_option("--count", count);
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::err);  // a warning per file is expected
  try {
    return octavo::run(path, count, seed);
  } catch (const octavo::SetupError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
