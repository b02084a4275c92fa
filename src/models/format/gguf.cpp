#include "models/format/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "models/format/byte_reader.h"
#include "models/format/printable.h"

namespace octavo {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;  // limit of the format
constexpr uint64_t kMaxTensorNameBytes = 1024;
constexpr uint64_t kMinAlignment = 8;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 65536;
// Minimum bytes of an entry in the file. Counts are checked against the remaining bytes, so that
// memory use is bounded by a small multiple of the file size.
constexpr uint64_t kMinValueEntryBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorEntryBytes = 8 + 4 + 8 + 4 + 8;

struct TensorEntry {
  TensorView view;
  uint64_t offset;  // of its data, from the start of the data section
};

class Parser {
 public:
  Parser(std::span<const std::byte> file, std::string_view file_name)
      : file_(file), file_name_(file_name), reader_(file, file_name) {}

  GgufFile parse() {
    Gguf metadata(std::string(file_name_), read_version());
    const uint64_t tensor_count = read_count("tensors", kMinTensorEntryBytes);
    const uint64_t value_count = read_count("metadata values", kMinValueEntryBytes);
    for (uint64_t i = 0; i < value_count; ++i) {
      const std::string_view key = read_string("a metadata key", kMaxKeyBytes);
      if (!metadata.add(key, read_value(key))) {
        reader_.fail(fmt::format("the metadata key {} appears twice", in_quotes(key)));
      }
    }
    const uint64_t alignment = read_alignment(metadata);
    std::vector<TensorEntry> entries = read_tensor_entries(tensor_count, alignment);
    return {.metadata = std::move(metadata), .tensors = place(std::move(entries), alignment)};
  }

 private:
  uint32_t read_version() {
    if (reader_.read_text(4, "the file's magic number") != "GGUF") {
      reader_.fail("not a GGUF file: it does not start with \"GGUF\"");
    }
    const auto version = reader_.read<uint32_t>("the version");
    if (version != 0 && (version & 0xffff) == 0) {
      reader_.fail("big-endian GGUF files are not supported");
    }
    if (version != 2 && version != 3) {
      reader_.fail(
          fmt::format("GGUF version {} is not supported; supported versions are 2 and 3", version));
    }
    return version;
  }

  uint64_t read_count(std::string_view of_what, uint64_t min_bytes) {
    const auto count = reader_.read<uint64_t>(of_what);
    if (count > reader_.remaining() / min_bytes) {
      reader_.fail(
          fmt::format("the file cannot hold the {} {} it announces; it is truncated or damaged, "
                      "download it again",
                      count, of_what));
    }
    return count;
  }

  std::string_view read_string(std::string_view what, uint64_t limit) {
    const auto length = reader_.read<uint64_t>(what);
    if (length > limit) {
      reader_.fail(
          fmt::format("{} is {} bytes long, more than the {} allowed", what, length, limit));
    }
    return reader_.read_text(length, what);
  }

  GgufType read_type(std::string_view key) {
    const auto id = reader_.read<uint32_t>("a metadata type");
    if (id > static_cast<uint32_t>(GgufType::F64)) {
      reader_.fail(fmt::format("metadata key {}: unknown value type {}", in_quotes(key), id));
    }
    return static_cast<GgufType>(id);
  }

  GgufValue read_value(std::string_view key) {
    switch (read_type(key)) {
      case GgufType::U8:
        return uint64_t{reader_.read<uint8_t>(key)};
      case GgufType::U16:
        return uint64_t{reader_.read<uint16_t>(key)};
      case GgufType::U32:
        return uint64_t{reader_.read<uint32_t>(key)};
      case GgufType::U64:
        return reader_.read<uint64_t>(key);
      case GgufType::I8:
        return int64_t{reader_.read<int8_t>(key)};
      case GgufType::I16:
        return int64_t{reader_.read<int16_t>(key)};
      case GgufType::I32:
        return int64_t{reader_.read<int32_t>(key)};
      case GgufType::I64:
        return reader_.read<int64_t>(key);
      case GgufType::F32:
        return double{reader_.read<float>(key)};
      case GgufType::F64:
        return reader_.read<double>(key);
      case GgufType::Bool:
        return read_bool(key);
      case GgufType::String:
        return read_string(key, std::numeric_limits<uint64_t>::max());
      case GgufType::Array:
        break;
    }
    return read_array(key);
  }

  bool read_bool(std::string_view key) {
    const auto byte = reader_.read<uint8_t>(key);
    if (byte > 1)
      reader_.fail(fmt::format("metadata key {}: {} is not a boolean", in_quotes(key), byte));
    return byte == 1;
  }

  GgufArray read_array(std::string_view key) {
    const GgufType type = read_type(key);
    if (type == GgufType::Array) {
      reader_.fail(fmt::format("metadata key {}: an array of arrays", in_quotes(key)));
    }
    const size_t element_bytes = gguf_scalar_bytes(type);
    const uint64_t count = read_count(fmt::format("elements of {}", in_quotes(key)),
                                      element_bytes == 0 ? 8 : element_bytes);
    const size_t begin = reader_.offset();
    if (type == GgufType::String) {
      for (uint64_t i = 0; i < count; ++i) read_string(key, std::numeric_limits<uint64_t>::max());
    } else if (type == GgufType::Bool) {
      for (uint64_t i = 0; i < count; ++i) read_bool(key);
    } else {
      reader_.take(count * element_bytes, key);
    }
    return {.type = type, .count = count, .bytes = file_.subspan(begin, reader_.offset() - begin)};
  }

  uint64_t read_alignment(const Gguf& metadata) const {
    const uint64_t alignment = metadata.find_u32("general.alignment").value_or(kDefaultAlignment);
    if (!std::has_single_bit(alignment) || alignment < kMinAlignment || alignment > kMaxAlignment) {
      reader_.fail(fmt::format("general.alignment is {}, but must be a power of two from {} to {}",
                               alignment, kMinAlignment, kMaxAlignment));
    }
    return alignment;
  }

  std::vector<TensorEntry> read_tensor_entries(uint64_t count, uint64_t alignment) {
    if (count > reader_.remaining() / kMinTensorEntryBytes) {  // checked again after the metadata
      reader_.fail(fmt::format("the file cannot hold the {} tensors it announces", count));
    }
    std::vector<TensorEntry> entries;
    entries.reserve(count);
    std::unordered_set<std::string_view> names;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view name = read_string("a tensor's name", kMaxTensorNameBytes);
      if (!names.insert(name).second) {
        reader_.fail(fmt::format("the tensor {} appears twice", in_quotes(name)));
      }
      entries.push_back(read_tensor_entry(name));
      if (entries.back().offset % alignment != 0) {
        fail_tensor(name, fmt::format("its offset {} is not a multiple of the alignment {}",
                                      entries.back().offset, alignment));
      }
    }
    return entries;
  }

  TensorEntry read_tensor_entry(std::string_view name) {
    const auto dims = reader_.read<uint32_t>("a tensor's number of dimensions");
    if (dims < 1 || dims > kMaxTensorDims) {
      fail_tensor(name, fmt::format("{} dimensions; 1 to {} are allowed", dims, kMaxTensorDims));
    }
    std::vector<int64_t> shape(dims);
    for (auto size = shape.rbegin(); size != shape.rend();
         ++size) {  // the file lists the innermost first
      const auto value = reader_.read<uint64_t>("a tensor's dimensions");
      if (value == 0 || !std::in_range<int64_t>(value)) {
        fail_tensor(name, fmt::format("a dimension of {}", value));
      }
      *size = static_cast<int64_t>(value);
    }
    const TensorType type = read_tensor_type(name);
    const auto offset = reader_.read<uint64_t>("a tensor's offset");
    return {
        .view = {.name = std::string(name), .type = type, .shape = std::move(shape), .bytes = {}},
        .offset = offset};
  }

  TensorType read_tensor_type(std::string_view name) {
    const auto id = reader_.read<uint32_t>("a tensor's type");
    const auto type = tensor_type_from_gguf(id);
    if (!type) fail_tensor(name, fmt::format("unknown type {}", id));
    if (!tensor_type_info(*type).supported) {
      fail_tensor(name,
                  fmt::format("its type {} is not supported; use a file in F32, F16, BF16, Q8_0, "
                              "Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1, Q4_0, MXFP4, Q3_K, Q2_K, "
                              "IQ4_NL, IQ4_XS, IQ3_S, IQ3_XXS, IQ2_S, IQ2_XS or IQ2_XXS",
                              tensor_type_name(*type)));
    }
    return *type;
  }

  // The bytes required by type and shape.
  uint64_t data_bytes(const TensorView& view) const {
    const TensorTypeInfo& info = tensor_type_info(view.type);
    if (view.shape.back() % info.block_elements != 0) {
      fail_tensor(view.name, fmt::format("rows of {} elements are not whole {} blocks of {}",
                                         view.shape.back(), info.name, info.block_elements));
    }
    const auto bytes = tensor_bytes(view.type, view.shape);
    if (!bytes) {
      fail_tensor(view.name,
                  fmt::format("the shape [{}] is too large", fmt::join(view.shape, ", ")));
    }
    return static_cast<uint64_t>(*bytes);
  }

  std::vector<TensorView> place(std::vector<TensorEntry> entries, uint64_t alignment) const {
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
    const uint64_t start = (reader_.offset() + alignment - 1) / alignment * alignment;
    const auto data = start < file_.size() ? file_.subspan(start) : std::span<const std::byte>();
    std::vector<TensorView> views;
    views.reserve(entries.size());
    uint64_t end = 0;  // of the previous tensor
    for (TensorEntry& entry : entries) {
      const uint64_t bytes = data_bytes(entry.view);
      if (entry.offset > data.size() || bytes > data.size() - entry.offset) {
        fail_tensor(
            entry.view.name,
            fmt::format("{} bytes of data start at {} but the file has {} bytes of data; the "
                        "file is truncated, download it again",
                        bytes, entry.offset, data.size()));
      }
      if (entry.offset < end) {
        fail_tensor(
            entry.view.name,
            fmt::format("data starts at {}, inside the previous tensor, which ends at {}: they "
                        "overlap",
                        entry.offset, end));
      }
      end = entry.offset + bytes;
      entry.view.bytes = data.subspan(entry.offset, bytes);
      views.push_back(std::move(entry.view));
    }
    return views;
  }

  [[noreturn]] void fail_tensor(std::string_view name, std::string_view message) const {
    throw SetupError(fmt::format("{}: tensor {}: {}", file_name_, in_quotes(name), message));
  }

  std::span<const std::byte> file_;
  std::string_view file_name_;
  ByteReader reader_;
};

}  // namespace

GgufFile parse_gguf(std::span<const std::byte> file, std::string_view file_name) {
  return Parser(file, file_name).parse();
}

}  // namespace octavo
