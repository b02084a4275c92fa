#include "models/gguf/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

#include "base/error.h"
#include "base/overloaded.h"
#include "models/format/printable.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostEntries = 4096;  // of an array with one entry per layer

// Keys of any architecture that do not affect the output.
constexpr auto kNeverUsed = std::to_array<std::string_view>({
    "vocab_size",              // the embedding matrix has as many rows
    "pooling_type",            // find_pooling.cpp reads it
    "rope.scaling.finetuned",  // a remark; granite, where it is a switch, reads it
    "tensor_data_layout",      // a remark
});

}  // namespace

GgufReader::GgufReader(const Checkpoint& checkpoint, const GgufArchitecture& architecture)
    : checkpoint_(checkpoint),
      gguf_(*checkpoint.gguf()),
      architecture_(architecture),
      prefix_(std::string(architecture.name) + ".") {}

Json GgufReader::array_of(const std::string& key, const GgufArray& array) const {
  if (array.count > kMostEntries)
    fail(key, fmt::format("has {} entries; at most {} are supported", array.count, kMostEntries));
  Json values = Json::array();
  if (array.type == GgufType::Bool) {
    for (const std::byte each : array.bytes) values.push_back(each != std::byte{0});
  } else if (array.type == GgufType::F32) {
    const auto floats = gguf_.find_floats(key);
    for (const float each : *floats) values.push_back(each);
  } else {
    const auto integers = gguf_.find_integers(key);
    for (const int64_t each : *integers) values.push_back(each);
  }
  return values;
}

Json GgufReader::take(std::string_view key) {
  const std::string whole = prefix_ + std::string(key);
  read_.insert(whole);
  const GgufValue* value = gguf_.find(whole);
  if (value == nullptr) return nullptr;
  return std::visit(Overloaded{[&](const GgufArray& array) { return array_of(whole, array); },
                               [](std::string_view text) { return Json(printable(text)); },
                               [](const auto& scalar) { return Json(scalar); }},
                    *value);
}

Json GgufReader::take_one(std::string_view key) {
  Json value = take(key);
  if (!value.is_array()) return value;
  if (value.empty()) refuse(key, "is an empty array");
  const Json first = value.front();
  if (!std::ranges::all_of(value, [&](const Json& each) { return each == first; }))
    refuse(key, "differs between layers, which is not supported for this architecture");
  return first;
}

std::vector<Json> GgufReader::take_per_layer(std::string_view key, size_t layers) {
  const Json value = take(key);
  if (value.is_null()) return {};
  if (!value.is_array()) return std::vector<Json>(layers, value);
  if (value.size() < layers)
    refuse(key, fmt::format("has {} entries for {} layers", value.size(), layers));
  // Entries after the model's own layers are for multi-token prediction.
  if (value.size() > layers && !architecture_.has_mtp)
    refuse(key, fmt::format("has {} entries for {} layers", value.size(), layers));
  return std::vector<Json>(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(layers));
}

double GgufReader::take_number(std::string_view key) {
  const Json value = take_one(key);
  if (value.is_null()) refuse(key, "is missing");
  if (!value.is_number()) refuse(key, "is not a number");
  return value.get<double>();
}

bool GgufReader::any_layer_has(std::string_view name, size_t layers) const {
  for (size_t layer = 0; layer < layers; ++layer) {
    if (has_tensor(fmt::format("blk.{}.{}", layer, name))) return true;
  }
  return false;
}

int64_t GgufReader::rows_of(std::string_view tensor) const {
  const TensorView& view = checkpoint_.at(tensor);
  return view.shape.empty() ? 1 : view.shape.front();
}

std::vector<float> GgufReader::floats(std::string_view tensor) const {
  const TensorView& view = checkpoint_.at(tensor);
  if (view.type != TensorType::F32) throw SetupError(fmt::format("{}: expected F32", tensor));
  std::vector<float> values(view.bytes.size() / sizeof(float));
  std::memcpy(values.data(), view.bytes.data(), values.size() * sizeof(float));
  return values;
}

void GgufReader::refuse_unread(const std::vector<std::string_view>& other_architectures) const {
  for (const auto& [key, value] : gguf_.values()) {
    const std::string_view family = key.substr(0, key.find('.'));
    if (family != architecture_.name) {
      if (std::ranges::find(other_architectures, family) != other_architectures.end()) {
        fail(key, fmt::format("belongs to another architecture than \"{}\": the file is labelled "
                              "wrongly; use another file of this model",
                              architecture_.name));
      }
      continue;
    }
    const std::string_view own = key.substr(std::min(key.size(), prefix_.size()));
    const auto among = [&](const auto& list) {
      return std::ranges::find(list, own) != std::ranges::end(list);
    };
    if (read_.contains(key) || among(kNeverUsed) || among(architecture_.unused_keys)) continue;
    fail(key, fmt::format("is not known for architecture \"{}\" and may change the output; use a "
                          "safetensors checkpoint of this model, or report the key",
                          architecture_.name));
  }
}

void GgufReader::refuse(std::string_view key, const std::string& problem) const {
  fail(prefix_ + std::string(key), problem);
}

double gguf_number(const Json& config, const char* key, double fallback) {
  const auto value = config.find(key);
  return value != config.end() && value->is_number() ? value->get<double>() : fallback;
}

void GgufReader::fail(std::string_view whole_key, const std::string& problem) const {
  throw SetupError(fmt::format("{}: the metadata key \"{}\" {}", gguf_.file_name(),
                               printable(whole_key), problem));
}

}  // namespace octavo
