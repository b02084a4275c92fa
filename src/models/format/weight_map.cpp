#include "models/format/weight_map.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "models/format/json_events.h"
#include "models/format/printable.h"

namespace octavo {
namespace {

constexpr int kMaxDepth = 16;

// {"metadata": anything, "weight_map": {"tensor": "file", ...}}; other keys are ignored.
class WeightMapReader : public JsonEvents {
 public:
  explicit WeightMapReader(std::string_view file_name) : JsonEvents(file_name) {}

  std::map<std::string, std::vector<std::string>> take() {
    if (!seen_map_) fail("\"weight_map\" is missing");
    return std::move(files_);
  }

  bool null() override { return pass("null"); }
  bool boolean(bool) override { return pass("a boolean"); }
  bool number_integer(number_integer_t) override { return pass("a number"); }
  bool number_unsigned(number_unsigned_t) override { return pass("a number"); }
  bool number_float(number_float_t, const string_t&) override { return pass("a number"); }

  bool start_array(std::size_t) override {
    pass("an array");
    return enter();
  }
  bool end_array() override { return leave(); }

  bool start_object(std::size_t) override {
    if (depth_ == 1 && expect_map_) {
      in_map_ = true;
      expect_map_ = false;
    } else if (depth_ > 0) {
      pass("an object");
    }
    return enter();
  }

  bool end_object() override {
    if (depth_ == 2) in_map_ = false;
    return leave();
  }

  bool key(string_t& key) override {
    if (in_map_) {
      if (!names_.insert(key).second)
        fail(fmt::format("the tensor {} appears twice", in_quotes(key)));
      tensor_ = key;
    } else if (depth_ == 1 && key == "weight_map") {
      if (std::exchange(seen_map_, true)) fail("\"weight_map\" appears twice");
      expect_map_ = true;
    }
    return true;
  }

  bool string(string_t& text) override {
    if (!in_map_) return pass("a string");
    check_file_name(text);
    files_[text].push_back(tensor_);
    return true;
  }

 private:
  std::string where() const override {
    return in_map_ ? "tensor " + in_quotes(tensor_) : "the index";
  }

  // Outside weight_map any value is accepted.
  bool pass(std::string_view what) {
    if (in_map_ || expect_map_ || depth_ == 0) unexpected(what);
    return true;
  }

  bool enter() {
    if (++depth_ > kMaxDepth) fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    return true;
  }

  bool leave() {
    --depth_;
    return true;
  }

  void check_file_name(std::string_view name) const {
    constexpr std::string_view kSuffix = ".safetensors";
    const bool plain =
        name.find_first_of("/\\:") == std::string_view::npos && !name.starts_with('.');
    if (!plain || !name.ends_with(kSuffix) || name.find('\0') != std::string_view::npos) {
      fail(fmt::format("{}: {} is not the name of a .safetensors file in this folder", where(),
                       in_quotes(name)));
    }
  }

  int depth_ = 0;
  bool expect_map_ = false;  // the next value is that of weight_map
  bool in_map_ = false;
  bool seen_map_ = false;
  std::string tensor_;
  std::unordered_set<std::string> names_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace

std::map<std::string, std::vector<std::string>> parse_weight_map(std::string_view json,
                                                                 std::string_view file_name) {
  WeightMapReader reader(file_name);
  reader.parse(json);
  return reader.take();
}

}  // namespace octavo
