#include "models/format/safetensors_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace octavo {

SafetensorsWriter::SafetensorsWriter(std::filesystem::path file,
                                     std::span<const SafetensorsTensor> tensors)
    : path_(std::move(file)), file_(path_, std::ios::binary | std::ios::trunc) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "mlx"}}}};
  uint64_t end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    starts_.push_back(end);
    end += tensor.bytes();
    header[tensor.name] = {{"dtype", tensor_type_name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {starts_.back(), end}}};
  }
  starts_.push_back(end);
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const auto length = static_cast<uint64_t>(text.size());
  char prefix[8];
  std::memcpy(prefix, &length, sizeof(prefix));
  file_.write(prefix, sizeof(prefix));
  file_.write(text.data(), static_cast<std::streamsize>(text.size()));
  expect_good();
  for (uint64_t& start : starts_) start += sizeof(prefix) + length;
}

void SafetensorsWriter::write(size_t index, uint64_t offset, std::span<const std::byte> bytes) {
  OCTAVO_CHECK(starts_.at(index) + offset + bytes.size() <= starts_.at(index + 1));
  file_.seekp(static_cast<std::streamoff>(starts_[index] + offset));
  file_.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  expect_good();
  written_ += bytes.size();
}

void SafetensorsWriter::finish() {
  OCTAVO_CHECK(written_ == starts_.back() - starts_.front());
  file_.close();
  expect_good();
}

void SafetensorsWriter::expect_good() const {
  if (!file_) {
    throw SetupError(fmt::format("{}: cannot be written: {}", path_.string(),
                                 errno != 0 ? std::strerror(errno) : "unknown error"));
  }
}

}  // namespace octavo
