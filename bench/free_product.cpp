#include "bench/free_product.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "bench/cases.h"
#include "bench/free_product_tiles.h"
#include "kernels/runtime/device_buffer.h"
#include "kernels/runtime/primitive.h"

namespace octavo::bench {
namespace {

enum class Split : uint8_t {
  kOutputs,  // as linear does
  kRows,     // each thread reads the whole weight
  kDepth,    // every sum in two halves, added at the end
};
constexpr std::array kSplits = {Split::kOutputs, Split::kRows, Split::kDepth};

void by_outputs(const FreeJob& job) {
  const int tiles = job.outputs / kTileRows;
  compute_pool().parallel_for(tiles / 2, 4, [&](int64_t begin, int64_t end) {
    multiply_box(job,
                 {.row_begin = 0,
                  .row_end = job.row_tiles,
                  .output_begin = static_cast<int>(begin) * 2,
                  .output_end = static_cast<int>(end) * 2,
                  .depth_begin = 0,
                  .depth_end = job.cols / kTileDepth},
                 nullptr);
  });
}

void by_rows(const FreeJob& job) {
  compute_pool().parallel_for((job.row_tiles + 3) / 4, 1, [&](int64_t begin, int64_t end) {
    multiply_box(job,
                 {.row_begin = static_cast<int>(begin) * 4,
                  .row_end = std::min(static_cast<int>(end) * 4, job.row_tiles),
                  .output_begin = 0,
                  .output_end = job.outputs / kTileRows,
                  .depth_begin = 0,
                  .depth_end = job.cols / kTileDepth},
                 nullptr);
  });
}

// Memory that consecutive calls share.
struct Scratch {
  std::vector<uint16_t> tiles;
  std::vector<float> sums;
};

void by_depth(const FreeJob& job, std::vector<float>& sums) {
  const int depth = job.cols / kTileDepth;
  const size_t part =
      static_cast<size_t>(job.row_tiles) * kTileRows * static_cast<size_t>(job.outputs);
  sums.resize(2 * part);
  compute_pool().parallel_for(2, 1, [&](int64_t begin, int64_t end) {
    for (auto half = static_cast<int>(begin); half < static_cast<int>(end); ++half) {
      multiply_box(job,
                   {.row_begin = 0,
                    .row_end = job.row_tiles,
                    .output_begin = 0,
                    .output_end = job.outputs / kTileRows,
                    .depth_begin = half * depth / 2,
                    .depth_end = (half + 1) * depth / 2},
                   sums.data() + static_cast<size_t>(half) * part);
    }
  });
  compute_pool().parallel_for(job.rows, 16, [&](int64_t begin, int64_t end) {
    add_sums(job, sums.data(), sums.data() + part, static_cast<int>(begin), static_cast<int>(end));
  });
}

void multiply(FreeJob job, Split split, Scratch& scratch) {
  scratch.tiles.resize(static_cast<size_t>(job.row_tiles) * kTileRows *
                       static_cast<size_t>(job.cols));
  job.tiles = scratch.tiles.data();
  compute_pool().parallel_for(job.row_tiles, 4, [&](int64_t begin, int64_t end) {
    pack_rows(job, static_cast<int>(begin), static_cast<int>(end));
  });
  switch (split) {
    case Split::kOutputs:
      return by_outputs(job);
    case Split::kRows:
      return by_rows(job);
    case Split::kDepth:
      return by_depth(job, scratch.sums);
  }
}

// inputs: x, packed weight. Runs on MLX's stream like linear, so that both have the same overhead.
class FreeProduct : public KernelPrimitive {
 public:
  FreeProduct(mx::Stream stream, Split split, std::shared_ptr<Scratch> scratch)
      : KernelPrimitive(stream), split_(split), scratch_(std::move(scratch)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    allocate(outputs[0]);
    const int rows = inputs[0].shape(0);
    const FreeJob job{.x = inputs[0].data<uint16_t>(),
                      .weight = inputs[1].data<uint16_t>(),
                      .rows = rows,
                      .row_tiles = (rows + kTileRows - 1) / kTileRows,
                      .cols = inputs[0].shape(1),
                      .outputs = inputs[1].shape(0),
                      .out = outputs[0].data<uint16_t>()};
    run_on_cpu(*this,
               [job, split = split_, scratch = scratch_] { multiply(job, split, *scratch); });
  }
  void run_metal(const std::vector<mx::array>&, std::vector<mx::array>&, metal::Encoder&) override {
    throw SetupError("the free product runs only on CPUs; use --device cpu");
  }
  const char* name() const override { return "FreeProduct"; }

 private:
  Split split_;
  std::shared_ptr<Scratch> scratch_;
};

class Runner {
 public:
  Runner(const mx::array& x, const mx::array& weight, int copies) : x_(x) {
    mx::array packed = make_device_buffer(weight.shape(), mx::bfloat16);
    pack_free(weight.data<uint16_t>(), weight.shape(0), weight.shape(1), packed.data<uint16_t>());
    weights_ = copies_of(packed, copies);
    choose_split();
  }

  void run(int calls) { run(calls, split_); }

 private:
  void run(int calls, Split split) {
    std::vector<mx::array> outs;
    for (int i = 0; i < calls; ++i) {
      const mx::array& weight = weights_[next_++ % weights_.size()];
      outs.emplace_back(mx::Shape{x_.shape(0), weight.shape(0)}, mx::bfloat16,
                        std::make_shared<FreeProduct>(kernel_stream(), split, scratch_),
                        std::vector<mx::array>{x_, weight});
    }
    mx::eval(outs);
  }

  void choose_split() {
    double least = 0;
    for (Split split : kSplits) {
      run(1, split);
      std::vector<double> times;
      for (int i = 0; i < 3; ++i) {
        const Stopwatch watch;
        run(8, split);
        times.push_back(watch.seconds());
      }
      const double time = median(times);
      if (split == kSplits.front() || time < least) {
        least = time;
        split_ = split;
      }
    }
  }

  mx::array x_;
  std::vector<mx::array> weights_;
  std::shared_ptr<Scratch> scratch_ = std::make_shared<Scratch>();
  Split split_ = Split::kOutputs;
  size_t next_ = 0;
};

}  // namespace

Contender free_product(const mx::array& x, const mx::array& weight, int copies) {
  if (cpu::active_isa() != cpu::Isa::kAmx) return {};
  auto runner = std::make_shared<Runner>(x, weight, copies);
  return [runner](int calls) { runner->run(calls); };
}

}  // namespace octavo::bench
