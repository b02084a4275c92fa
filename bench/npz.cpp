#include "bench/npz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <boost/crc.hpp>
#include <concepts>
#include <cstdint>
#include <fstream>

#include "base/error.h"

namespace octavo::bench {
namespace {

constexpr uint16_t kZipVersion = 20;  // 2.0, the first with folders and compression methods
constexpr uint16_t kFirstOfJanuary1980 = 0x21;

template <std::unsigned_integral T>
void append_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff));
}

std::string npy_bytes(const NpzArray& array) {
  size_t count = 1;
  for (const size_t size : array.shape) count *= size;
  OCTAVO_CHECK(!array.shape.empty() && count == array.values.size());
  std::string header =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}{}), }}",
                  fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  constexpr size_t kPreamble = 10;   // magic, version and the header's length
  constexpr size_t kAlignment = 64;  // of the values
  const size_t unpadded = kPreamble + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ').push_back('\n');
  std::string npy = "\x93NUMPY";
  npy.push_back(1);
  npy.push_back(0);
  append_little_endian(npy, static_cast<uint16_t>(header.size()));
  npy += header;
  for (const double value : array.values) append_little_endian(npy, std::bit_cast<uint64_t>(value));
  return npy;
}

// The fields that a file's own header and its entry in the directory have in common.
std::string zip_fields(const std::string& name, const std::string& content) {
  boost::crc_32_type crc;
  crc.process_bytes(content.data(), content.size());
  std::string fields;
  append_little_endian(fields, kZipVersion);
  append_little_endian<uint16_t>(fields, 0);  // flags
  append_little_endian<uint16_t>(fields, 0);  // stored
  append_little_endian<uint16_t>(fields, 0);  // time
  append_little_endian(fields, kFirstOfJanuary1980);
  append_little_endian(fields, static_cast<uint32_t>(crc.checksum()));
  append_little_endian(fields, static_cast<uint32_t>(content.size()));  // compressed
  append_little_endian(fields, static_cast<uint32_t>(content.size()));
  append_little_endian(fields, static_cast<uint16_t>(name.size()));
  append_little_endian<uint16_t>(fields, 0);  // extra fields
  return fields;
}

}  // namespace

std::string npz_bytes(std::span<const NpzArray> arrays) {
  std::string zip, directory;
  for (const NpzArray& array : arrays) {
    const std::string name = array.name + ".npy", content = npy_bytes(array);
    const std::string fields = zip_fields(name, content);
    directory += "PK\x01\x02";
    append_little_endian(directory, kZipVersion);
    directory += fields;
    directory.append(10, '\0');  // comment, disk, attributes
    append_little_endian(directory, static_cast<uint32_t>(zip.size()));
    directory += name;
    zip += "PK\x03\x04" + fields + name + content;
  }
  const auto start = static_cast<uint32_t>(zip.size());
  zip += directory + "PK\x05\x06";
  zip.append(4, '\0');  // disks
  append_little_endian(zip, static_cast<uint16_t>(arrays.size()));
  append_little_endian(zip, static_cast<uint16_t>(arrays.size()));
  append_little_endian(zip, static_cast<uint32_t>(directory.size()));
  append_little_endian(zip, start);
  append_little_endian<uint16_t>(zip, 0);  // comment
  return zip;
}

void write_npz(const std::filesystem::path& path, std::span<const NpzArray> arrays) {
  std::ofstream file(path, std::ios::binary);
  file << npz_bytes(arrays);
  file.close();
  if (!file) throw SetupError(fmt::format("{}: cannot be written", path.string()));
}

}  // namespace octavo::bench
