#include "models/model_digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "models/config.h"

namespace octavo {
namespace {

constexpr size_t kSampleBytes = 1024;

// By name: machines may have the tensors in another order, or in other numbers of files.
std::vector<const TensorView*> sorted_tensors(const Checkpoint& checkpoint) {
  std::vector<const TensorView*> tensors;
  for (const TensorView& tensor : checkpoint.tensors()) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {}, [](const TensorView* tensor) { return tensor->name; });
  return tensors;
}

std::string samples_of(std::span<const std::byte> bytes) {
  std::string samples;
  const size_t length = std::min(bytes.size(), kSampleBytes);
  for (const size_t at : {size_t{0}, (bytes.size() - length) / 2, bytes.size() - length}) {
    const auto piece = bytes.subspan(at, length);
    samples.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return samples;
}

Sha256Digest digest_of(const std::string& text) {
  return sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace

Sha256Digest model_digest(const Checkpoint& checkpoint) {
  std::string facts =
      read_config(checkpoint).json().dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (const TensorView* tensor : sorted_tensors(checkpoint)) {
    facts += fmt::format("\n{} {} {} {:02x}", tensor->name, tensor_type_name(tensor->type),
                         fmt::join(tensor->shape, ","),
                         fmt::join(digest_of(samples_of(tensor->bytes)), ""));
    checkpoint.release(*tensor);
  }
  return digest_of(facts);
}

}  // namespace octavo
