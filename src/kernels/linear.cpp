#include "kernels/linear.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/decode_row.h"
#include "kernels/cpu/linear.h"
#include "kernels/primitive.h"

namespace octavo {
namespace {

// What a primitive must remember of a weight besides its parts, which are graph inputs.
struct WeightShape {
  WeightFormat format;
  int rows, cols, bits, group_size;
  size_t part_count;

  explicit WeightShape(const Weight& weight)
      : format(weight.format),
        rows(weight.rows),
        cols(weight.cols),
        bits(weight.bits),
        group_size(weight.group_size),
        part_count(weight.parts.size()) {}

  WeightView view(std::span<const mx::array> parts) const {
    return view_of(format, rows, cols, bits, group_size, parts);
  }
};

// inputs: x, the weight's parts, bias if there is one.
class Linear : public KernelPrimitive {
 public:
  Linear(mx::Stream stream, const Weight& weight, bool has_bias)
      : KernelPrimitive(stream), weight_(weight), has_bias_(has_bias) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("linear.cpu");
    const mx::array& x = inputs[0];
    mx::array& out = outputs[0];
    require_contiguous(x);
    allocate(out);
    cpu::LinearArgs args{
        .x = x.data<void>(),
        .x_dtype = dtype_of(x),
        .rows = static_cast<int64_t>(x.size()) / weight_.cols,
        .weight = weight_.view(std::span(inputs).subspan(1, weight_.part_count)),
        .out = out.data<void>(),
        .out_dtype = dtype_of(out),
    };
    if (has_bias_) {
      args.bias = inputs.back().data<void>();
      args.bias_dtype = dtype_of(inputs.back());
    }
    run_on_cpu(*this, [args] { cpu::linear(args); });
  }
  const char* name() const override { return "Linear"; }

 private:
  WeightShape weight_;
  bool has_bias_;
};

// inputs: tokens, the table's parts.
class Embed : public KernelPrimitive {
 public:
  Embed(mx::Stream stream, const Weight& table) : KernelPrimitive(stream), table_(table) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("embed.cpu");
    require_contiguous(inputs[0]);
    mx::array& out = outputs[0];
    allocate(out);
    const WeightView table = table_.view(std::span(inputs).subspan(1));
    run_on_cpu(*this, [table, tokens = inputs[0].data<int32_t>(), count = inputs[0].size(),
                       target = out.data<void>(), dtype = dtype_of(out)] {
      compute_pool().parallel_for(static_cast<int64_t>(count), 16, [&](int64_t begin, int64_t end) {
        std::vector<float> row(static_cast<size_t>(table.cols));
        for (int64_t i = begin; i < end; ++i) {
          OCTAVO_CHECK(tokens[i] >= 0 && tokens[i] < table.rows);
          cpu::decode_row(table, tokens[i], row.data());
          cpu::store_floats(row.data(), table.cols, dtype, cpu::at(target, dtype, i * table.cols));
        }
      });
    });
  }
  const char* name() const override { return "Embed"; }

 private:
  WeightShape table_;
};

}  // namespace

mx::array linear(const mx::array& x, const Weight& weight, const LinearOptions& options) {
  OCTAVO_CHECK(x.ndim() >= 1 && x.shape(-1) == weight.cols);
  if (options.path == KernelPath::kReference) return reference::linear(x, weight, options);
  mx::Shape shape = x.shape();
  shape.back() = weight.rows;
  std::vector<mx::array> inputs = {x};
  inputs.insert(inputs.end(), weight.parts.begin(), weight.parts.end());
  if (options.bias) inputs.push_back(*options.bias);
  auto primitive = std::make_shared<Linear>(kernel_stream(), weight, options.bias.has_value());
  return mx::array(std::move(shape), options.out_dtype.value_or(x.dtype()), std::move(primitive),
                   std::move(inputs));
}

mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype, KernelPath path) {
  OCTAVO_CHECK(tokens.ndim() == 1 && tokens.dtype() == mx::int32);
  if (path == KernelPath::kReference) return reference::embed(table, tokens, dtype);
  std::vector<mx::array> inputs = {tokens};
  inputs.insert(inputs.end(), table.parts.begin(), table.parts.end());
  return mx::array({tokens.shape(0), table.cols}, dtype,
                   std::make_shared<Embed>(kernel_stream(), table), std::move(inputs));
}

}  // namespace octavo
