#include "kernels/linear.h"

#include <vector>

#include "kernels/activation.h"

namespace octavo::reference {
namespace {

// The output of layer `index` of the call in float32.
mx::array product(const mx::array& x, const Projection& layer, size_t index,
                  const LinearOptions& options) {
  mx::array y = mx::matmul(mx::astype(x, mx::float32), mx::transpose(dequantize(layer.weight)));
  if (options.lora && options.lora->layers[index] != nullptr)
    y = add_lora(y, x, options.lora->rows, *options.lora->layers[index]);
  return layer.bias ? mx::add(y, mx::astype(*layer.bias, mx::float32)) : y;
}

mx::array finish(mx::array y, const mx::array& x, const LinearOptions& options) {
  const mx::Dtype dtype = options.out_dtype.value_or(x.dtype());
  y = mx::multiply(y, mx::array(options.scale));
  if (options.soft_cap > 0) {
    const mx::array cap(options.soft_cap);
    y = mx::multiply(cap, mx::tanh(mx::divide(y, cap)));
  }
  if (!options.residual) return mx::astype(y, dtype);
  return mx::astype(mx::add(mx::astype(*options.residual, mx::float32), y), dtype);
}

}  // namespace

mx::array joined_linear(const mx::array& x, std::span<const Projection> layers,
                        const LinearOptions& options) {
  count_launch("linear.reference");
  const mx::array normed = options.norm ? reference::norm(x, *options.norm) : x;
  std::vector<mx::array> parts;
  for (size_t i = 0; i < layers.size(); ++i)
    parts.push_back(product(normed, layers[i], i, options));
  return finish(mx::concatenate(parts, -1), x, options);
}

mx::array gated_linear(const mx::array& x, const Projection& gate, const Projection& up,
                       Activation activation, const LinearOptions& options) {
  count_launch("linear.reference");
  const mx::array normed = options.norm ? reference::norm(x, *options.norm) : x;
  return finish(reference::gated_activation(product(normed, gate, 0, options),
                                            product(normed, up, 1, options), activation),
                x, options);
}

mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype, float scale,
                const std::optional<LoraOptions>& lora) {
  count_launch("embed.reference");
  const mx::array factor = mx::astype(mx::array(scale, dtype), mx::float32);
  mx::array rows = mx::take(dequantize(table), tokens, 0);
  if (lora && lora->has_effect())
    rows = add_embedding_lora(rows, tokens, lora->rows, *lora->layers[0]);
  return mx::astype(mx::multiply(rows, factor), dtype);
}

}  // namespace octavo::reference
