#include "models/format/safetensors_header.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "models/format/json_events.h"
#include "models/format/printable.h"
#include "models/format/tensor_view.h"

namespace octavo {
namespace {

// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"k":
// "v"}}
class HeaderReader : public JsonEvents {
 public:
  explicit HeaderReader(std::string_view file_name) : JsonEvents(file_name) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kEntryValue:
        place_ = Place::kEntry;
        return true;
      case Place::kMetadataValue:
        place_ = Place::kMetadata;
        return true;
      default:
        unexpected("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::kEntry) finish_entry();
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool key(string_t& key) override {
    if (place_ == Place::kTop) {
      start_entry(key);
    } else if (place_ == Place::kMetadata) {
      if (header_.metadata.contains(key)) {
        fail(fmt::format("__metadata__: the key {} appears twice", in_quotes(key)));
      }
      metadata_key_ = key;
    } else {
      start_field(key);
    }
    return true;
  }

  // MLX writes null for empty metadata.
  bool null() override {
    if (place_ != Place::kMetadataValue) unexpected("null");
    place_ = Place::kTop;
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(metadata_key_, text);
    } else if (place_ == Place::kDtype) {
      type_ = tensor_type_from_safetensors(text);
      if (!type_) fail(fmt::format("{}: unknown dtype {}", where(), in_quotes(text)));
      place_ = Place::kEntry;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kShapeValue) {
      place_ = Place::kShape;
      shape_.emplace();
    } else if (place_ == Place::kOffsetsValue) {
      place_ = Place::kOffsets;
      offsets_.emplace();
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_->size() != 2) {
      fail(fmt::format("{}: data_offsets must be two numbers", where()));
    }
    place_ = Place::kEntry;
    return true;
  }

  bool number_integer(number_integer_t value) override {
    fail(fmt::format("{}: the number {} is negative", where(), value));
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      add_dimension(value);
    } else if (place_ == Place::kOffsets) {
      if (offsets_->size() == 2) fail(fmt::format("{}: data_offsets must be two numbers", where()));
      offsets_->push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

 private:
  // Position in the header; the k...Value places expect a value to open.
  enum class Place {
    kStart,
    kTop,
    kEntryValue,
    kEntry,
    kDtype,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
    kMetadataValue,
    kMetadata,
    kEnd,
  };

  std::string where() const override {
    if (place_ == Place::kStart || place_ == Place::kTop) return "the header";
    if (place_ == Place::kMetadataValue || place_ == Place::kMetadata) return "__metadata__";
    return "tensor " + in_quotes(name_);
  }

  void start_entry(const std::string& name) {
    if (!names_.insert(name).second) {
      fail(fmt::format("the tensor {} appears twice", in_quotes(name)));
    }
    name_ = name;
    type_.reset();
    shape_.reset();
    offsets_.reset();
    place_ = name == "__metadata__" ? Place::kMetadataValue : Place::kEntryValue;
  }

  void start_field(const std::string& field) {
    const auto enter = [&](Place place, bool seen) {
      if (seen) fail(fmt::format("{}: the field {} appears twice", where(), field));
      place_ = place;
    };
    if (field == "dtype") {
      enter(Place::kDtype, type_.has_value());
    } else if (field == "shape") {
      enter(Place::kShapeValue, shape_.has_value());
    } else if (field == "data_offsets") {
      enter(Place::kOffsetsValue, offsets_.has_value());
    } else {
      fail(fmt::format("{}: unknown field {}", where(), in_quotes(field)));
    }
  }

  void add_dimension(uint64_t size) {
    if (shape_->size() == kMaxTensorDims) {
      fail(fmt::format("{}: more than {} dimensions", where(), kMaxTensorDims));
    }
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail(fmt::format("{}: the dimension {} is too large", where(), size));
    }
    shape_->push_back(static_cast<int64_t>(size));
  }

  void finish_entry() {
    const auto need = [&](bool seen, const char* field) {
      if (!seen) fail(fmt::format("{}: the field {} is missing", where(), field));
    };
    need(type_.has_value(), "dtype");
    need(shape_.has_value(), "shape");
    need(offsets_.has_value(), "data_offsets");
    header_.entries.push_back({.name = std::move(name_),
                               .type = *type_,
                               .shape = *std::move(shape_),
                               .offsets = {offsets_->at(0), offsets_->at(1)}});
  }

  Place place_ = Place::kStart;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  std::string metadata_key_;
  // The entry being read.
  std::string name_;
  std::optional<TensorType> type_;
  std::optional<std::vector<int64_t>> shape_;
  std::optional<std::vector<uint64_t>> offsets_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::string_view file_name) {
  HeaderReader reader(file_name);
  reader.parse(json);
  return reader.take();
}

}  // namespace octavo
