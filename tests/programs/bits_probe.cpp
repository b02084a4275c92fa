// Whether a row of a matrix product depends on the other rows, on this device and for each data type.
//
// usage: bits_probe [--metal] [--inputs 1024] [--outputs 256] [--seed 1]
//
// The same row is multiplied alone, in every position among 7 and among 39 others, with the others
// permuted, and among zeros, infinities and NaNs. The weights are dense, of the rows' type. Prints one
// JSON line with a hash of the row's output for each data type; exits with status 1 if any output
// differs from that of the row alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/half.h"
#include "base/xxh64.h"
#include "kernels/linear.h"
#include "kernels/runtime/device.h"
#include "support/loaded_model.h"
#include "support/simulated_device.h"

namespace octavo {
namespace {

struct ProbeOptions {
  int inputs = 1024;
  int outputs = 256;
  unsigned seed = 1;
};

using Row = std::vector<std::byte>;  // numbers of one data type

Row row_of(const std::vector<float>& numbers, DType dtype) {
  const size_t item = dtype == DType::kFloat32 ? 4 : 2;
  Row row(numbers.size() * item);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint16_t half =
        dtype == DType::kFloat16 ? float_to_half(numbers[i]) : float_to_bf16(numbers[i]);
    std::memcpy(&row[i * item], item == 4 ? static_cast<const void*>(&numbers[i]) : &half, item);
  }
  return row;
}

class Probe {
 public:
  Probe(const ProbeOptions& options, DType dtype)
      : options_(options), dtype_(dtype), random_(options.seed), weight_(random_weight()) {
    for (size_t i = 0; i < kMostOthers; ++i) others_.push_back(random_row());
    alone_ = product({row_}, 0);
  }

  nlohmann::ordered_json run() {
    for (const size_t count : {size_t{7}, kMostOthers}) {
      for (int order = 0; order < 3; ++order) {
        std::vector<Row> others(others_.begin(), others_.begin() + static_cast<ptrdiff_t>(count));
        std::ranges::shuffle(others, random_);
        for (size_t place = 0; place <= count; ++place) compare(others, place);
      }
      for (const float number : {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN()}) {
        const std::vector<float> numbers(static_cast<size_t>(options_.inputs), number);
        compare(std::vector<Row>(count, row_of(numbers, dtype_)), count / 2);
      }
    }
    return {{"dtype", std::string(name_of(dtype_))},
            {"hash", fmt::format("{:016x}", alone_)},
            {"products", products_},
            {"different", different_},
            {"first_difference", first_difference_}};
  }

 private:
  static constexpr size_t kMostOthers = 39;

  Row random_row() {
    std::normal_distribution<float> any;
    std::vector<float> numbers(static_cast<size_t>(options_.inputs));
    for (float& number : numbers) number = any(random_);
    return row_of(numbers, dtype_);
  }

  Weight random_weight() {
    row_ = random_row();
    Row matrix;
    for (int i = 0; i < options_.outputs; ++i) {
      const Row row = random_row();
      matrix.insert(matrix.end(), row.begin(), row.end());
    }
    return make_dense_weight(options_.outputs, options_.inputs, dtype_, matrix);
  }

  mx::array array_of(const Row& numbers, const mx::Shape& shape) const {
    const void* data = numbers.data();
    switch (dtype_) {
      case DType::kFloat16:
        return mx::array(static_cast<const mx::float16_t*>(data), shape, mx::float16);
      case DType::kBFloat16:
        return mx::array(static_cast<const mx::bfloat16_t*>(data), shape, mx::bfloat16);
      default:
        return mx::array(static_cast<const float*>(data), shape, mx::float32);
    }
  }

  // The hash of the output of row `place`.
  uint64_t product(const std::vector<Row>& rows, size_t place) {
    Row all;
    for (const Row& row : rows) all.insert(all.end(), row.begin(), row.end());
    const mx::Shape shape = {static_cast<int>(rows.size()), options_.inputs};
    mx::array y = linear(array_of(all, shape), weight_);
    y.eval();
    const size_t width = y.nbytes() / rows.size();
    return xxh64({y.data<std::byte>() + place * width, width});
  }

  void compare(std::vector<Row> rows, size_t place) {
    rows.insert(rows.begin() + static_cast<ptrdiff_t>(place), row_);
    ++products_;
    if (product(rows, place) == alone_) return;
    if (different_++ == 0) first_difference_ = fmt::format("row {} of {}", place, rows.size());
  }

  ProbeOptions options_;
  DType dtype_;
  std::mt19937 random_;
  Row row_;
  Weight weight_;
  std::vector<Row> others_;
  uint64_t alone_ = 0;
  int products_ = 0;
  int different_ = 0;
  std::string first_difference_;
};

int run(const ProbeOptions& options) {
  nlohmann::ordered_json products = nlohmann::ordered_json::array();
  bool is_identical = true;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    products.push_back(Probe(options, dtype).run());
    is_identical = is_identical && products.back()["different"] == 0;
  }
  std::cout << nlohmann::ordered_json{{"identical", is_identical},
                                      {"inputs", options.inputs},
                                      {"outputs", options.outputs},
                                      {"device", device_facts().name},
                                      {"architecture", device_facts().architecture},
                                      {"launches", launch_counts()},
                                      {"dtypes", products}}
            << "\n";
  return is_identical ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::ProbeOptions options;
  CLI::App app("Compares a row of a product alone and among other rows");
  app.add_option("--inputs", options.inputs)->check(CLI::Range(8, 1 << 16));
  app.add_option("--outputs", options.outputs)->check(CLI::Range(1, 1 << 16));
  app.add_option("--seed", options.seed);
  bool metal = false;
  app.add_flag("--metal", metal, "run the kernels in the Metal simulator");
  return octavo::run_program(app, argc, argv, [&] {
    octavo::use_device(octavo::DeviceChoice::kAuto);
    octavo::SimulatedDevice device(metal);
    const int status = octavo::run(options);
    device.finish();
    return status;
  });
}
