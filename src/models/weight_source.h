// weight_source.h - turns a checkpoint's tensors into what kernels take, by Hugging Face name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/weights/expert_stack.h"
#include "kernels/weights/weight.h"
#include "models/format/checkpoint.h"
#include "models/rename.h"
#include "models/weight_view.h"

namespace octavo {

// Called after each tensor with the file bytes read so far and in all.
using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

enum class WeightUse : uint8_t {
  kLoad,
  // Headers only: matrices have their shapes and no numbers, and what is wrong is noted, not
  // thrown.
  kCheck,
};

// Rows [first, first + rows) of a matrix that has `of`: several stand in one.
struct RowRange {
  int first = 0;
  int of = 0;
};

// How a head's rows of q and k stand.
struct RopeRows {
  int head_dim = 0;
  int rope_dims = 0;
  bool interleaved = false;  // dimension 2i turns against 2i + 1, not against i + rope_dims / 2
};

// Reads each tensor once and releases its file pages. Errors are SetupErrors that name the tensor.
class WeightSource {
 public:
  WeightSource(const Checkpoint& checkpoint, LoadProgress progress,
               WeightUse use = WeightUse::kLoad);

  // From now on these parts of names are looked up as the checkpoint spells them.
  void set_renames(std::vector<Rename> renames) { renames_ = std::move(renames); }

  bool has(const std::string& name) const;

  // "<module>.weight" as [rows, cols], dense, MLX-quantised (with .scales and .biases) or GGUF
  // blocks.
  Weight matrix(const std::string& module, int rows, int cols, RowOrder row_order = {});
  // A part of one that stands for several.
  Weight matrix_part(const std::string& module, RowRange range, int rows, int cols);
  // The same with each head's rows in the order of rope.h, where the family or a GGUF has them in
  // another.
  Weight rope_matrix(const std::string& module, int rows, int cols, const RopeRows& order);

  // Whether there is a matrix, or a stack of them, of this name: "<module>.weight", a tensor called
  // just so, or the "<module>_blocks" and "_scales" of gpt-oss.
  bool has_matrix(const std::string& module) const;
  // The matrices of a stack [shape.count, shape.rows, shape.cols], once for every list of the rows
  // to take; an empty list takes all.
  std::vector<ExpertStack> expert_stacks(const std::string& module, const MatrixShape& shape,
                                         std::span<const std::vector<int>> row_picks);
  // The same from one module per expert.
  ExpertStack expert_stack(std::span<const std::string> modules, int rows, int cols);
  // Vectors [count, size], once for every list of entries to take, in the file's own type.
  std::vector<mx::array> expert_vectors(const std::string& name, int count, int size,
                                        std::span<const std::vector<int>> picks);

  // A vector of `size` floats in the file's own type. With an order, entry i of the result is
  // order[i] of the file's.
  mx::array vector(const std::string& name, int size, RowOrder order = {});
  // The same in float32.
  mx::array float_vector(const std::string& name, int size);
  // A norm's weights, with `offset` added in float32.
  mx::array norm(const std::string& name, int size, float offset);
  mx::array rope_vector(const std::string& name, int size, const RopeRows& order);
  // The one number of a tensor of shape [1].
  float number(const std::string& name);
  // The weights of a depthwise convolution, [channels, 1, taps] in the file or [channels, taps, 1]
  // as mlx-lm's converter turns them. Returns [taps, channels].
  mx::array conv_taps(const std::string& name, int channels, int taps);

  // Bytes loaded so far, by description of the format ("q4_k", "bfloat16").
  const std::map<std::string, uint64_t>& bytes_by_format() const { return bytes_by_format_; }
  uint64_t loaded_bytes() const;

  bool only_checks() const { return use_ == WeightUse::kCheck; }
  // With kCheck: each tensor that is missing, or not as it was asked for.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::string name_in_file(std::string name) const;
  const TensorView& tensor(const std::string& name) const;
  MatrixTensors tensors_of(const std::string& module) const;
  // Both of a matrix or a stack; with kCheck a view without data.
  MatrixTensors find_matrix(const std::string& module);
  WeightView view_of(const MatrixTensors& tensors, const MatrixShape& shape);
  // A tensor of floats of this shape; null when it is not there and that was noted.
  const TensorView* find_floats(const std::string& name, const std::vector<int64_t>& shape);
  // Runs `work`; with kCheck a SetupError is noted, and false returned.
  bool attempt(const std::function<void()>& work);
  std::vector<int> order_of(int rows, const RopeRows& order) const;
  // `share`: of the tensor, when others take the rest.
  void done_with(const TensorView& tensor, double share = 1);

  const Checkpoint& checkpoint_;
  LoadProgress progress_;
  WeightUse use_;
  std::vector<std::string> problems_;
  std::vector<Rename> renames_;
  bool is_gguf_;
  bool permuted_;
  uint64_t total_bytes_ = 0;
  uint64_t read_bytes_ = 0;
  std::map<std::string, uint64_t> bytes_by_format_;
};

}  // namespace octavo
