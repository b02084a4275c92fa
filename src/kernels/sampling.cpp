#include "kernels/sampling.h"

#include <memory>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/sample.h"
#include "kernels/kernel_path.h"
#include "kernels/primitive.h"

namespace octavo {
namespace {

// inputs: logits.
class Sample : public KernelPrimitive {
 public:
  Sample(mx::Stream stream, std::vector<RowSampling> rows)
      : KernelPrimitive(stream),
        rows_(std::make_shared<const std::vector<RowSampling>>(std::move(rows))) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("sample.cpu");
    require_contiguous(inputs[0]);
    allocate(outputs[0]);
    run_on_cpu(*this, [rows = rows_, logits = inputs[0].data<float>(),
                       vocab = static_cast<int64_t>(inputs[0].shape(1)),
                       out = outputs[0].data<int32_t>()] {
      compute_pool().parallel_for(
          static_cast<int64_t>(rows->size()), 1, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
              out[row] = cpu::sample_row({logits + row * vocab, static_cast<size_t>(vocab)},
                                         (*rows)[static_cast<size_t>(row)]);
            }
          });
    });
  }
  const char* name() const override { return "Sample"; }

 private:
  std::shared_ptr<const std::vector<RowSampling>> rows_;
};

}  // namespace

mx::array sample(const mx::array& logits, std::vector<RowSampling> rows) {
  OCTAVO_CHECK(logits.ndim() == 2 && logits.dtype() == mx::float32);
  OCTAVO_CHECK(logits.shape(0) == static_cast<int>(rows.size()));
  return mx::array({logits.shape(0)}, mx::int32,
                   std::make_shared<Sample>(kernel_stream(), std::move(rows)), {logits});
}

}  // namespace octavo
