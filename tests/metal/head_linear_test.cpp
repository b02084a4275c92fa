#include "kernels/head_linear.h"

#include "kernels/linear.h"
#include "metal/linear_support.h"

namespace octavo::metal_linear {
namespace {

constexpr int kHeads = 3;
constexpr int kOutputs = 32;

mx::array head_of(const mx::array& x, int head) {
  mx::array rows = mx::contiguous(mx::reshape(
      mx::slice(x, {0, head, 0}, {x.shape(0), head + 1, x.shape(2)}), {x.shape(0), x.shape(2)}));
  rows.eval();
  return rows;
}

TEST(MetalHeadLinear, EveryDtypeAgrees) {
  std::mt19937 random(1);
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const Weight& weight : {random_dense(random, kHeads * kOutputs, 72, dtype),
                                 random_affine(random, kHeads * kOutputs, 128, 8, 64, dtype)}) {
      for (int rows : {1, 9, 34}) {
        SCOPED_TRACE(testing::Message()
                     << weight.describe() << " " << name_of(dtype) << " " << rows);
        const mx::array x = random_array(random, {rows, kHeads, weight.cols}, mlx_dtype(dtype));
        const auto made = [&] { return head_linear(x, weight); };
        const mx::array expected = launching("head_linear.reference", [&] {
          return head_linear(x, weight, KernelPath::kReference);
        });
        expect_close(expected, launching("head_linear.cpu", made), tolerance_of(dtype));
        expect_close(expected, on_metal(made), tolerance_of(dtype));
      }
    }
  }
}

TEST(MetalHeadLinear, HasTheBitsOfOneLinearPerHead) {
  std::mt19937 random(2);
  const mx::array matrices = random_array(random, {kHeads * kOutputs, 72}, mx::bfloat16);
  const Weight all = make_dense_weight(kHeads * kOutputs, 72, DType::kBFloat16, bytes_of(matrices));
  const mx::array x = random_array(random, {10, kHeads, 72}, mx::bfloat16);
  const mx::array whole = on_metal([&] { return head_linear(x, all); });
  for (int head = 0; head < kHeads; ++head) {
    const mx::array own = rows_of(matrices, head * kOutputs, (head + 1) * kOutputs);
    const Weight weight = make_dense_weight(kOutputs, 72, DType::kBFloat16, bytes_of(own));
    const mx::array rows = head_of(x, head);
    const mx::array alone = on_metal([&] { return linear(rows, weight); });
    EXPECT_TRUE(same_bits(floats_of(alone), floats_of(head_of(whole, head)))) << head;
  }
}

}  // namespace
}  // namespace octavo::metal_linear
