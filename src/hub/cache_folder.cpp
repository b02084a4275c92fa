#include "hub/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/log_text.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// `name` must be one part of a path. Files that are already there may have odd names.
void require_one_part(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw SetupError(fmt::format("the model cache cannot hold a file of the name \"{}\"", name));
}

bool is_link(int folder, const std::string& name) {
  struct stat status {};
  return ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(status.st_mode);
}

std::string fresh_name(const std::string& name) {
  return fmt::format("{}.{}.tmp", name.substr(0, 200), ::getpid());
}

}  // namespace

bool is_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of("/\\") == std::string::npos && is_clean_log_text(name);
}

std::optional<CacheFolder> CacheFolder::open_cache(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), kFolderFlags);
  if (descriptor >= 0) return CacheFolder(descriptor, path);
  if (errno == ENOENT) return std::nullopt;
  CacheFolder(-1, path).fail("open", "");
}

CacheFolder CacheFolder::make_cache(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    errno = error.value();
    CacheFolder(-1, path).fail("create", "");
  }
  std::optional<CacheFolder> cache = open_cache(path);
  if (!cache) CacheFolder(-1, path).fail("open", "");
  return std::move(*cache);
}

CacheFolder::CacheFolder(CacheFolder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

CacheFolder& CacheFolder::operator=(CacheFolder&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

CacheFolder::~CacheFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<CacheFolder> CacheFolder::find(const fs::path& path) const {
  std::optional<CacheFolder> folder(CacheFolder(::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0), path_));
  for (const fs::path& part : path) {
    if (part.empty()) continue;  // after a slash at the end
    folder = folder->find_one(part.string());
    if (!folder) return std::nullopt;
  }
  return folder;
}

CacheFolder CacheFolder::make(const fs::path& path) const {
  CacheFolder folder(::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0), path_);
  for (const fs::path& part : path)
    if (!part.empty()) folder = folder.make_one(part.string());
  return folder;
}

std::optional<CacheFolder> CacheFolder::find_one(const std::string& name) const {
  require_one_part(name);
  const int descriptor = ::openat(descriptor_, name.c_str(), kFolderFlags | O_NOFOLLOW);
  if (descriptor >= 0) return CacheFolder(descriptor, path_ / name);
  if (errno == ENOENT) return std::nullopt;
  const int problem = errno;
  if (is_link(descriptor_, name)) {
    throw SetupError(
        fmt::format("{} is a symbolic link: octavo changes files only inside the cache; replace "
                    "the link by a folder, or set HF_HUB_CACHE to a cache on the other disk",
                    (path_ / name).string()));
  }
  errno = problem;
  fail("open", name);
}

CacheFolder CacheFolder::make_one(const std::string& name) const {
  require_one_part(name);
  if (::mkdirat(descriptor_, name.c_str(), 0777) != 0 && errno != EEXIST) fail("create", name);
  std::optional<CacheFolder> folder = find_one(name);
  if (!folder) fail("open", name);
  return std::move(*folder);
}

std::vector<CacheFolder::Entry> CacheFolder::entries() const {
  // A description of its own: the position in a directory is shared between duplicates.
  const int descriptor = ::openat(descriptor_, ".", kFolderFlags);
  const std::unique_ptr<DIR, CloseDirectory> directory(descriptor < 0 ? nullptr
                                                                      : ::fdopendir(descriptor));
  if (!directory) {
    if (descriptor >= 0) ::close(descriptor);
    fail("read", "");
  }
  std::vector<Entry> entries;
  while (const dirent* each = ::readdir(directory.get())) {
    const std::string name = each->d_name;
    if (name == "." || name == "..") continue;
    struct stat status {};
    const bool known = ::fstatat(descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    entries.push_back({.name = name, .is_folder = known && S_ISDIR(status.st_mode)});
  }
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

std::string CacheFolder::first_word_of(const std::string& name) const {
  require_one_part(name);
  // Not blocking: a named pipe would wait for its writer.
  const int descriptor =
      ::openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::array<char, 4096> bytes{};
  struct stat status {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t count = regular ? ::read(descriptor, bytes.data(), bytes.size()) : 0;
  ::close(descriptor);
  const std::string text(bytes.data(), count > 0 ? static_cast<size_t>(count) : 0);
  constexpr const char* kSpaces = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  return text.substr(begin, text.find_first_of(kSpaces, begin) - begin);
}

void CacheFolder::link(const std::string& target, const std::string& name) const {
  require_one_part(name);
  if (::symlinkat(target.c_str(), descriptor_, name.c_str()) == 0) return;
  if (errno != EEXIST) fail("link", name);
  std::array<char, 4096> there{};
  const ssize_t count = ::readlinkat(descriptor_, name.c_str(), there.data(), there.size());
  if (count >= 0 && std::string_view(there.data(), static_cast<size_t>(count)) == target) return;
  const std::string fresh = fresh_name(name);
  ::unlinkat(descriptor_, fresh.c_str(), 0);
  if (::symlinkat(target.c_str(), descriptor_, fresh.c_str()) != 0) fail("link", name);
  rename_over(fresh, name);
}

void CacheFolder::write(const std::string& name, const std::string& text) const {
  require_one_part(name);
  const std::string fresh = fresh_name(name);
  ::unlinkat(descriptor_, fresh.c_str(), 0);
  const int descriptor = ::openat(descriptor_, fresh.c_str(),
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) fail("write", name);
  const bool written =
      ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int problem = errno;
  ::close(descriptor);
  errno = problem;
  if (!written) fail("write", name);
  rename_over(fresh, name);
}

void CacheFolder::rename_over(const std::string& fresh, const std::string& name) const {
  if (::renameat(descriptor_, fresh.c_str(), descriptor_, name.c_str()) != 0) fail("write", name);
}

void CacheFolder::remove_file(const std::string& name) const {
  require_one_part(name);
  if (::unlinkat(descriptor_, name.c_str(), 0) != 0 && errno != ENOENT) fail("remove", name);
}

void CacheFolder::remove_empty_folders() const {
  for (const Entry& entry : entries()) {
    if (!entry.is_folder) continue;
    if (const auto folder = find_one(entry.name)) folder->remove_empty_folders();
    ::unlinkat(descriptor_, entry.name.c_str(), AT_REMOVEDIR);  // refuses a folder with files
  }
}

void CacheFolder::remove_tree(const std::string& name) const {
  const auto folder = find_one(name);
  if (!folder) return;
  for (const Entry& entry : folder->entries()) {
    if (entry.is_folder) {
      folder->remove_tree(entry.name);
    } else {
      folder->remove_file(entry.name);
    }
  }
  if (::unlinkat(descriptor_, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    fail("remove", name);
}

void CacheFolder::fail(const char* what, const std::string& name) const {
  throw SetupError(
      fmt::format("cannot write to the cache: {} {}: {}; set HF_HOME or HF_HUB_CACHE to another "
                  "folder",
                  what, (name.empty() ? path_ : path_ / name).string(), std::strerror(errno)));
}

}  // namespace octavo
