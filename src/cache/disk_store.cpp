#include "cache/disk_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "base/units.h"
#include "base/xxh64.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kDiskBlock = 4096;  // files occupy whole blocks
// For the lock, the folder itself, and rounding.
constexpr uint64_t kOverheadBytes = 4 * kDiskBlock;
// Bounds the index in memory to about 100 MB.
constexpr uint64_t kMostSlots = 1 << 18;

struct Header {
  std::array<char, 8> magic = {'o', 'c', 't', 'p', 'a', 'g', 'e', '1'};
  uint64_t page_bytes = 0;
  Sha256Digest fingerprint = {};
  std::array<uint64_t, 9> unused = {};
  uint64_t check = 0;  // of all before it
};

struct Entry {
  BlockHash block = {};
  BlockHash parent = {};
  int32_t part = 0;
  int32_t parent_part = 0;
  uint64_t stamp = 0;
  std::array<uint64_t, 2> checksums = {};
  uint32_t has_parent = 0;
  uint32_t flags = 0;
  std::array<uint64_t, 2> unused2 = {};
  uint64_t check = 0;  // of all before it, and of the slot
};
constexpr uint32_t kCommon = 1;
constexpr uint32_t kReceived = 2;
constexpr uint64_t kEntryBytes = 128;
static_assert(sizeof(Header) == kEntryBytes && sizeof(Entry) == kEntryBytes);

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
uint64_t check_of(const T& value, uint64_t seed) {
  return xxh64(bytes_of(value).first(kEntryBytes - sizeof(uint64_t)), seed);
}

// They include the key, so that a misplaced page fails.
std::array<uint64_t, 2> checksums_of(const PageKey& key, std::span<const std::byte> page) {
  const uint64_t seed = xxh64(std::as_bytes(std::span(key.block)), static_cast<uint32_t>(key.part));
  return {xxh64(page, seed), xxh64(page, ~seed)};
}

uint64_t entry_offset(int slot) { return (static_cast<uint64_t>(slot) + 1) * kEntryBytes; }

uint64_t whole_blocks(uint64_t bytes) { return (bytes + kDiskBlock - 1) / kDiskBlock * kDiskBlock; }

Sha256Digest digest_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return sha256({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

constexpr std::string_view kStemBegin = "octavo-";

std::string stem_of(const std::string& fingerprint) {
  const Sha256Digest digest = digest_of(fingerprint);
  std::string stem(kStemBegin);
  for (size_t i = 0; i < 8; ++i) stem += fmt::format("{:02x}", digest[i]);
  return stem;
}

// True for files written by a store: stem_of() plus an extension. Other files are left alone.
bool is_ours(const fs::path& path) {
  const std::string stem = path.stem().string();
  const std::string ending = path.extension().string();
  return (ending == ".pages" || ending == ".index") && stem.size() == kStemBegin.size() + 16 &&
         stem.starts_with(kStemBegin) &&
         stem.find_first_not_of("0123456789abcdef", kStemBegin.size()) == std::string::npos;
}

[[noreturn]] void refuse(const fs::path& path, const char* what) {
  throw SetupError(fmt::format("--prefix-disk: {} {}: {}; choose a writable folder", what,
                               path.string(), std::strerror(errno)));
}

[[noreturn]] void refuse_kind(const fs::path& path, const char* kind) {
  throw SetupError(
      fmt::format("--prefix-disk: {} is {}; octavo writes only to regular files; "
                  "remove it or choose another folder",
                  path.string(), kind));
}

// Readable only by the owner: pages reveal prompts. Never opens the target of a symbolic link: the
// store truncates and overwrites its files.
DiskFile open_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0 && errno == ELOOP) refuse_kind(path, "a symbolic link");
  if (fd < 0) refuse(path, "cannot open");
  DiskFile file(fd);
  struct stat status = {};
  if (::fstat(fd, &status) != 0) refuse(path, "cannot open");
  if (!S_ISREG(status.st_mode)) refuse_kind(path, "not a regular file");
  return file;
}

uint64_t size_of(const DiskFile& file) {
  struct stat status = {};
  return ::fstat(file.fd(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

fs::path with_ending(const fs::path& stem, const char* ending) { return stem.string() + ending; }

}  // namespace

DiskFile& DiskFile::operator=(DiskFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

DiskFile::~DiskFile() {
  if (fd_ >= 0) ::close(fd_);
}

bool DiskFile::write(uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC;
    if (done <= 0) return false;
    offset += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return true;
}

bool DiskFile::read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    offset += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return true;
}

std::unique_ptr<DiskStore> DiskStore::open(const DiskStoreOptions& options) {
  OCTAVO_CHECK(options.page_bytes > 0);
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) {
    errno = error.value();
    refuse(options.folder, "cannot create the folder");
  }
  DiskFile lock = open_file(options.folder / "octavo.lock");
  if (::flock(lock.fd(), LOCK_EX | LOCK_NB) != 0) return nullptr;
  std::unique_ptr<DiskStore> store(new DiskStore(options, std::move(lock)));
  store->find_other_models();
  const uint64_t least = kOverheadBytes + store->slot_bytes_ + kEntryBytes;
  if (options.most_bytes < least) {
    throw SetupError(
        fmt::format("--prefix-disk-size {} is smaller than one page of this model; "
                    "use {} or more",
                    format_bytes(options.most_bytes), format_bytes(least + kDiskBlock)));
  }
  while (store->most_slots() < 1 && store->drop_other_model()) {
  }
  store->open_files();
  return store;
}

DiskStore::DiskStore(DiskStoreOptions options, DiskFile lock)
    : options_(std::move(options)),
      slot_bytes_(whole_blocks(options_.page_bytes)),
      stem_(options_.folder / stem_of(options_.fingerprint)),
      lock_(std::move(lock)) {}

void DiskStore::find_other_models() {
  std::error_code error;
  for (const auto& file : fs::directory_iterator(options_.folder, error)) {
    fs::path stem = file.path();
    stem.replace_extension();
    if (stem == stem_ || !is_ours(file.path()) || file.is_symlink(error)) continue;
    auto other = std::ranges::find(others_, stem, &OtherModel::stem);
    if (other == others_.end()) other = others_.insert(others_.end(), {stem, 0, {}});
    const uint64_t size = file.file_size(error);
    if (!error) other->bytes += whole_blocks(size);
    const auto used = file.last_write_time(error);
    if (!error) other->used = std::max(other->used, used);
  }
  std::ranges::sort(others_, std::less<>(), &OtherModel::used);
}

bool DiskStore::drop_other_model() {
  if (others_.empty()) return false;
  std::error_code error;
  for (const char* ending : {".index", ".pages"})
    fs::remove(with_ending(others_.front().stem, ending), error);
  others_.erase(others_.begin());
  return true;
}

int DiskStore::most_slots() const {
  uint64_t taken = kOverheadBytes;
  for (const OtherModel& other : others_) taken += other.bytes;
  if (taken >= options_.most_bytes) return 0;
  return static_cast<int>(
      std::min(kMostSlots, (options_.most_bytes - taken) / (slot_bytes_ + kEntryBytes)));
}

void DiskStore::open_files() {
  pages_ = open_file(with_ending(stem_, ".pages"));
  index_ = open_file(with_ending(stem_, ".index"));
  if (header_fits()) {
    scan();
  } else {
    clear();
  }
  // So that other processes know when this model was last used.
  ::futimens(index_.fd(), nullptr);
}

bool DiskStore::header_fits() const {
  Header header;
  if (!index_.read(0, std::as_writable_bytes(std::span(&header, 1)))) return false;
  return header.magic == Header{}.magic && header.page_bytes == options_.page_bytes &&
         header.fingerprint == digest_of(options_.fingerprint) &&
         header.check == check_of(header, 0);
}

bool DiskStore::write_header() {
  Header header{.page_bytes = options_.page_bytes, .fingerprint = digest_of(options_.fingerprint)};
  header.check = check_of(header, 0);
  return index_.write(0, bytes_of(header));
}

void DiskStore::scan() {
  const auto most = static_cast<uint64_t>(most_slots());
  // The files may date from a larger limit.
  if (size_of(pages_) > most * slot_bytes_ &&
      ::ftruncate(pages_.fd(), static_cast<off_t>(most * slot_bytes_)) != 0)
    return clear();
  if (size_of(index_) > (most + 1) * kEntryBytes &&
      ::ftruncate(index_.fd(), static_cast<off_t>((most + 1) * kEntryBytes)) != 0)
    return clear();
  const uint64_t entries = size_of(index_) / kEntryBytes;
  slots_ = static_cast<int>((size_of(pages_) + slot_bytes_ - 1) / slot_bytes_);
  const uint64_t whole = size_of(pages_) / slot_bytes_;
  std::vector<Entry> read(entries <= 1 ? 0 : std::min(entries - 1, whole));
  if (!index_.read(kEntryBytes, std::as_writable_bytes(std::span(read)))) return clear();
  for (size_t slot = 0; slot < read.size(); ++slot) {
    const Entry& entry = read[slot];
    if (entry.check != check_of(entry, slot + 1)) continue;
    DiskRecord record{.key = {entry.block, entry.part},
                      .stamp = entry.stamp,
                      .checksums = entry.checksums,
                      .common = (entry.flags & kCommon) != 0,
                      .received = (entry.flags & kReceived) != 0};
    if (entry.has_parent == 1) record.parent = PageKey{entry.parent, entry.parent_part};
    records_.emplace_back(static_cast<int>(slot), record);
  }
}

void DiskStore::clear() {
  records_.clear();
  slots_ = 0;
  const bool emptied = ::ftruncate(index_.fd(), 0) == 0 && ::ftruncate(pages_.fd(), 0) == 0;
  if (!emptied || !write_header()) fail("cannot clear the files");
}

void DiskStore::fail(const char* what) {
  error_ = fmt::format("{} in {}: {}", what, options_.folder.string(), std::strerror(errno));
}

bool DiskStore::write(int slot, DiskRecord& record, std::span<const std::byte> page) {
  OCTAVO_CHECK(slot >= 0 && slot < most_slots() && page.size() == options_.page_bytes);
  record.checksums = checksums_of(record.key, page);
  Entry entry{.block = record.key.block,
              .part = record.key.part,
              .stamp = record.stamp,
              .checksums = record.checksums,
              .flags = (record.common ? kCommon : 0) | (record.received ? kReceived : 0)};
  if (record.parent) {
    entry.parent = record.parent->block;
    entry.parent_part = record.parent->part;
    entry.has_parent = 1;
  }
  entry.check = check_of(entry, static_cast<uint64_t>(slot) + 1);
  slots_ = std::max(slots_, slot + 1);
  const bool written =
      index_.write(entry_offset(slot), bytes_of(Entry{})) &&
      pages_.write(static_cast<uint64_t>(slot) * slot_bytes_, page) &&
      // The file always ends with a whole slot.
      (size_of(pages_) >= static_cast<uint64_t>(slot + 1) * slot_bytes_ ||
       ::ftruncate(pages_.fd(),
                   static_cast<off_t>((static_cast<uint64_t>(slot) + 1) * slot_bytes_)) == 0) &&
      index_.write(entry_offset(slot), bytes_of(entry));
  if (!written) fail("cannot write a page");
  return written;
}

bool DiskStore::read(int slot, const DiskRecord& record, std::span<std::byte> page) const {
  return page.size() == options_.page_bytes &&
         pages_.read(static_cast<uint64_t>(slot) * slot_bytes_, page) &&
         checksums_of(record.key, page) == record.checksums;
}

void DiskStore::erase(int slot) {
  if (!index_.write(entry_offset(slot), bytes_of(Entry{}))) fail("cannot erase a page");
}

uint64_t DiskStore::bytes() const {
  uint64_t bytes = kOverheadBytes + static_cast<uint64_t>(slots_) * (slot_bytes_ + kEntryBytes);
  for (const OtherModel& other : others_) bytes += other.bytes;
  return bytes;
}

}  // namespace octavo
