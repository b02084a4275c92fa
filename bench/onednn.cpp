#include "bench/onednn.h"

#include <omp.h>

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "base/compute_pool.h"

namespace octavo::bench {
namespace {

using Tag = dnnl::memory::format_tag;
constexpr auto kBf16 = dnnl::memory::data_type::bf16;

void fill(dnnl::memory& memory, std::span<const uint16_t> from) {
  std::memcpy(memory.get_data_handle(), from.data(), from.size_bytes());
}

class Product : public OneDnnProduct {
 public:
  Product(const Shape& shape, int copies, std::span<const uint16_t> x,
          std::span<const uint16_t> weight)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), matmul_(primitive(shape)) {
    fill(x_, x);
    // W^T: the columns of a row-major [outputs, cols].
    dnnl::memory plain({{shape.cols, shape.outputs}, kBf16, Tag::ba}, engine_);
    fill(plain, weight);
    for (int i = 0; i < copies; ++i) {
      weights_.emplace_back(weight_desc_, engine_);
      dnnl::reorder(plain, weights_.back()).execute(stream_, plain, weights_.back());
    }
    stream_.wait();
  }

  void run(int calls) override {
    for (int i = 0; i < calls; ++i) {
      next_ = (next_ + 1) % weights_.size();
      matmul_.execute(
          stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weights_[next_]}, {DNNL_ARG_DST, y_}});
    }
    stream_.wait();
  }

  std::span<const uint16_t> output() const override {
    return {static_cast<const uint16_t*>(y_.get_data_handle()), y_.get_desc().get_size() / 2};
  }

 private:
  dnnl::matmul primitive(const Shape& shape) {
    const dnnl::memory::desc x({shape.rows, shape.cols}, kBf16, Tag::ab);
    const dnnl::memory::desc w({shape.cols, shape.outputs}, kBf16, Tag::any);
    const dnnl::memory::desc y({shape.rows, shape.outputs}, kBf16, Tag::ab);
    const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(x, w, y), engine_);
    x_ = dnnl::memory(x, engine_);
    y_ = dnnl::memory(y, engine_);
    weight_desc_ = plan.weights_desc();
    return dnnl::matmul(plan);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory x_, y_;
  dnnl::memory::desc weight_desc_;
  dnnl::matmul matmul_;
  std::vector<dnnl::memory> weights_;
  size_t next_ = 0;
};

}  // namespace

bool onednn_built() { return true; }

std::unique_ptr<OneDnnProduct> OneDnnProduct::make(const Shape& shape, int copies,
                                                   std::span<const uint16_t> x,
                                                   std::span<const uint16_t> weight) {
  ::omp_set_num_threads(compute_pool().threads());
  try {
    return std::make_unique<Product>(shape, copies, x, weight);
  } catch (const dnnl::error&) {
    return nullptr;  // bf16 is not supported on this machine
  }
}

}  // namespace octavo::bench
