#include "models/format/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "models/format/byte_reader.h"
#include "models/format/printable.h"
#include "models/format/safetensors_header.h"

namespace octavo {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation

std::string_view read_header_text(ByteReader& reader, std::string_view file_name) {
  const auto length = reader.read<uint64_t>("the header's length");
  if (length > kMaxHeaderBytes) {
    throw SetupError(fmt::format(
        "{}: the header's length is given as {} bytes, more than the {} allowed; this is "
        "not a safetensors file, or it is damaged",
        file_name, length, kMaxHeaderBytes));
  }
  const std::string_view header = reader.read_text(length, "the header");
  if (!header.starts_with('{')) {
    throw SetupError(fmt::format(
        "{}: the header does not start with '{{'; this is not a safetensors file", file_name));
  }
  return header;
}

// Adds the next tensor, whose data must start where the previous one ended.
class Placer {
 public:
  Placer(std::span<const std::byte> data, std::string_view file_name)
      : data_(data), file_name_(file_name) {}

  TensorView place(SafetensorsEntry entry) {
    const auto [begin, end] = entry.offsets;
    if (begin > end) fail(entry, fmt::format("data_offsets [{}, {}] run backwards", begin, end));
    if (end > data_.size()) {
      fail(entry, fmt::format("data ends at {} but the file has {} bytes of data; the file is "
                              "truncated, download it again",
                              end, data_.size()));
    }
    if (begin < end_) {
      fail(entry,
           fmt::format(
               "data starts at {}, inside the previous tensor, which ends at {}: they overlap",
               begin, end_));
    }
    if (begin > end_) {
      fail(entry,
           fmt::format("data starts at {} but the previous tensor ends at {}: there is a gap",
                       begin, end_));
    }
    const auto bytes = tensor_bytes(entry.type, entry.shape);
    if (!bytes)
      fail(entry, fmt::format("the shape [{}] is too large", fmt::join(entry.shape, ", ")));
    if (static_cast<uint64_t>(*bytes) != end - begin) {
      fail(entry, fmt::format("{} [{}] takes {} bytes but data_offsets give it {}",
                              tensor_type_name(entry.type), fmt::join(entry.shape, ", "), *bytes,
                              end - begin));
    }
    end_ = end;
    return {.name = std::move(entry.name),
            .type = entry.type,
            .shape = std::move(entry.shape),
            .bytes = data_.subspan(begin, end - begin)};
  }

  void finish() const {
    if (end_ != data_.size()) {
      throw SetupError(fmt::format("{}: the tensors end at {} but the file has {} bytes of data",
                                   file_name_, end_, data_.size()));
    }
  }

 private:
  [[noreturn]] void fail(const SafetensorsEntry& entry, std::string_view message) const {
    throw SetupError(fmt::format("{}: tensor {}: {}", file_name_, in_quotes(entry.name), message));
  }

  std::span<const std::byte> data_;
  std::string_view file_name_;
  uint64_t end_ = 0;  // of the previous tensor
};

}  // namespace

Safetensors parse_safetensors(std::span<const std::byte> file, std::string_view file_name) {
  ByteReader reader(file, file_name);
  SafetensorsHeader header =
      parse_safetensors_header(read_header_text(reader, file_name), file_name);
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offsets, a.name) < std::tie(b.offsets, b.name);
  });
  Safetensors result;
  result.metadata = std::move(header.metadata);
  result.tensors.reserve(header.entries.size());
  Placer placer(file.subspan(reader.offset()), file_name);
  for (SafetensorsEntry& entry : header.entries) {
    result.tensors.push_back(placer.place(std::move(entry)));
  }
  placer.finish();
  return result;
}

}  // namespace octavo
