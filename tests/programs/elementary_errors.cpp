// Measures the errors of the elementary functions over all floats, or over every STEP-th.
//
// usage: elementary_errors [STEP]
// Prints the largest error of each function in units in the last place of the exact result, and the
// number where it is. The exact result is the C library's in double precision, whose error is 2^-28
// of such a unit. Exits with status 1 if an error exceeds the function's bound in docs/arithmetic.md.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <mutex>
#include <numbers>
#include <string>
#include <vector>

#include "base/compute_pool.h"
#include "base/portable_math.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo {
namespace {

constexpr float kSmallest = std::numeric_limits<float>::min();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr int64_t kBlock = 4096;

struct Function {
  const char* name;
  double bound;           // units in the last place
  float lowest, largest;  // where the bound holds
  std::function<void(const float* x, int64_t count, float* y)> run;
  std::function<double(double)> exact;
};

std::function<void(const float*, int64_t, float*)> kernel(cpu::Elementary kind) {
  return [kind](const float* x, int64_t count, float* y) {
    cpu::kernels().elementary(kind, x, count, y);
  };
}

std::function<void(const float*, int64_t, float*)> rounded(std::function<double(double)> of) {
  return [of = std::move(of)](const float* x, int64_t count, float* y) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(of(static_cast<double>(x[i])));
  };
}

std::vector<Function> functions() {
  using cpu::Elementary;
  const auto sine = [](double x) { return sine_cosine(x).sine; };
  const auto cosine = [](double x) { return sine_cosine(x).cosine; };
  const auto angle = static_cast<float>(kLargestAngle);
  return {
      {"exp", 1.02, -87.3f, 88.3f, kernel(Elementary::kExp), [](double x) { return std::exp(x); }},
      {"exp2", 0.96, -126, 0, kernel(Elementary::kExp2), [](double x) { return std::exp2(x); }},
      {"erf", 1.03, -kLargest, kLargest, kernel(Elementary::kErf),
       [](double x) { return std::erf(x); }},
      {"gelu", 1.76, 0, kLargest, kernel(Elementary::kGelu),
       [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }},
      {"tanh", 1.34, -kLargest, kLargest, kernel(Elementary::kTanh),
       [](double x) { return std::tanh(x); }},
      {"sigmoid", 2.49, -87.3f, kLargest, kernel(Elementary::kSigmoid),
       [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"softplus", 3.67, -86.6f, kLargest, kernel(Elementary::kSoftplus),
       [](double x) { return x > 50 ? x : std::log1p(std::exp(x)); }},
      {"silu", 2.41, -87.3f, kLargest, kernel(Elementary::kSilu),
       [](double x) { return x / (1 + std::exp(-x)); }},
      {"log", 0.501, kSmallest, kLargest, rounded(portable_log),
       [](double x) { return std::log(x); }},
      {"sine", 0.501, -angle, angle, rounded(sine), [](double x) { return std::sin(x); }},
      {"cosine", 0.501, -angle, angle, rounded(cosine), [](double x) { return std::cos(x); }},
  };
}

struct Worst {
  double error = 0;
  float at = 0;

  void add(double other_error, float other_at) {
    if (!(other_error <= error)) *this = {other_error, other_at};  // NaN is the worst
  }
};

// Denormal results count as zero, so the last place of the smallest normal number is the finest.
double error_of(float actual, double exact) {
  constexpr auto kNormal = static_cast<double>(kSmallest);
  if (std::abs(exact) < 1.0001 * kNormal)
    return std::abs(static_cast<double>(actual)) <= 1.0001 * kNormal ? 0 : HUGE_VAL;
  constexpr uint64_t kExponent = 0x7ff0000000000000;
  const auto power = std::bit_cast<double>(std::bit_cast<uint64_t>(exact) & kExponent);
  return std::abs(static_cast<double>(actual) - exact) / (power * 0x1p-23);
}

// Of the floats with the bits begin, begin + step, ...
Worst worst_of(const Function& function, int64_t begin, int64_t end, int64_t step) {
  std::vector<float> x, y(kBlock);
  Worst worst;
  const auto run = [&] {
    function.run(x.data(), static_cast<int64_t>(x.size()), y.data());
    for (size_t i = 0; i < x.size(); ++i)
      worst.add(error_of(y[i], function.exact(static_cast<double>(x[i]))), x[i]);
    x.clear();
  };
  for (int64_t bits = begin; bits < end; bits += step) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(value >= function.lowest && value <= function.largest)) continue;
    x.push_back(value);
    if (x.size() == kBlock) run();
  }
  run();
  return worst;
}

int run(int64_t step) {
  constexpr int64_t kFloats = int64_t{1} << 32, kPieces = 4096;
  std::printf("%-10s %10s %8s   %s\n", "function", "error", "bound", "at");
  bool within = true;
  for (const Function& function : functions()) {
    Worst worst;
    std::mutex mutex;
    compute_pool().parallel_for(kPieces, 1, [&](int64_t begin, int64_t end) {
      cpu::prepare_thread();
      // A multiple of the step, so that pieces do not repeat the same low bits.
      const int64_t first = (begin * (kFloats / kPieces) + step - 1) / step * step;
      const Worst found = worst_of(function, first, end * (kFloats / kPieces), step);
      const std::lock_guard lock(mutex);
      worst.add(found.error, found.at);
    });
    std::printf("%-10s %10.4f %8.3f   %.9g\n", function.name, worst.error, function.bound,
                static_cast<double>(worst.at));
    std::fflush(stdout);
    within = within && worst.error <= function.bound;
  }
  return within ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc > 2) return 2;
  return octavo::run(argc == 2 ? std::stoll(argv[1]) : 1);
}
