// weight_source.h - turns a checkpoint's tensors into what kernels take, by Hugging Face name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "kernels/weight.h"
#include "models/format/checkpoint.h"

namespace octavo {

// Called after each tensor with the file bytes read so far and in all.
using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Reads each tensor once and releases its file pages. Errors are SetupErrors that name the tensor.
class WeightSource {
 public:
  WeightSource(const Checkpoint& checkpoint, LoadProgress progress);

  bool has(const std::string& name) const;

  // "<module>.weight" as [rows, cols], dense, MLX-quantised (with .scales and .biases) or GGUF
  // blocks.
  Weight matrix(const std::string& module, int rows, int cols, RowOrder row_order = {});
  // The same with each head's rows put back from llama.cpp's rope order, where the file has them in
  // it.
  Weight rope_matrix(const std::string& module, int rows, int cols, int head_dim);

  // A vector of `size` floats in the file's own type.
  mx::array vector(const std::string& name, int size);
  // The same in float32.
  mx::array float_vector(const std::string& name, int size);
  // A norm's weights, with `offset` added in float32.
  mx::array norm(const std::string& name, int size, float offset);
  // The weights of a depthwise convolution, [channels, 1, taps] in the file or [channels, taps, 1]
  // as mlx-lm's converter turns them. Returns [taps, channels].
  mx::array conv_taps(const std::string& name, int channels, int taps);
  mx::array rope_vector(const std::string& name, int size, int head_dim);

  // Bytes loaded so far, by description of the format ("q4_k", "bfloat16").
  const std::map<std::string, uint64_t>& bytes_by_format() const { return bytes_by_format_; }
  uint64_t loaded_bytes() const;

 private:
  const TensorView& tensor(const std::string& name) const;
  Weight load_matrix(const std::string& module, int rows, int cols, RowOrder row_order);
  Weight load_mlx_quantized(const std::string& module, int rows, int cols, RowOrder row_order);
  void done_with(const TensorView& tensor);

  const Checkpoint& checkpoint_;
  LoadProgress progress_;
  bool is_gguf_;
  bool permuted_;
  uint64_t total_bytes_ = 0;
  uint64_t read_bytes_ = 0;
  std::map<std::string, uint64_t> bytes_by_format_;
};

}  // namespace octavo
