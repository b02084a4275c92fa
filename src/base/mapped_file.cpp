#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw SetupError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

// Closes the descriptor at the end of the scope; the mapping stays valid.
struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot open");
  const Descriptor guard{fd};
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail(path, "cannot stat");
  if (!S_ISREG(status.st_mode)) throw SetupError(path.string() + ": not a regular file");
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED) fail(path, "cannot map");
  data_ = static_cast<const std::byte*>(mapped);
  watch_ = watch_mapping(data_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      watch_(std::move(other.watch_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    watch_ = std::move(other.watch_);
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() noexcept {
  watch_.reset();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
}

void MappedFile::check() const {
  if (watch_ == nullptr || !has_lost_bytes(*watch_)) return;
  throw SetupError(fmt::format(
      "{}: became shorter while it was read, or its disk cannot be read; copy the file again",
      path_.string()));
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  OCTAVO_CHECK(part.data() >= data_ && part.data() + part.size() <= data_ + size_);
  // Only whole pages inside `part`: its edges may share a page with a neighbour still in use.
  const size_t begin = static_cast<size_t>(part.data() - data_);
  const size_t first = (begin + page - 1) / page * page;
  const size_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path, size_t limit) {
  const MappedFile file(path);
  if (file.bytes().size() > limit) {
    throw SetupError(fmt::format("{}: {} bytes, more than the {} allowed for this kind of file",
                                 path.string(), file.bytes().size(), limit));
  }
  std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  file.check();
  return text;
}

}  // namespace octavo
