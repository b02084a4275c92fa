// weight_source.h - loads a checkpoint's tensors in the form kernels take, by Hugging Face name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/weights/expert_stack.h"
#include "kernels/weights/weight.h"
#include "models/format/checkpoint.h"
#include "models/output_share.h"
#include "models/quantized/quantized_matrix.h"
#include "models/rename.h"
#include "models/stage_range.h"
#include "models/weight_view.h"

namespace octavo {

class MergedAdapter;
struct DecoderPlan;
struct GgufArchitecture;

// Called after each tensor with the file bytes read so far and the total.
using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

enum class WeightUse : uint8_t {
  kLoad,
  // Headers only: matrices have shapes but no data, and errors are recorded instead of thrown.
  kCheck,
};

// Rows [first, first + rows) of a fused matrix of `of` rows.
struct RowRange {
  int first = 0;
  int of = 0;
};

// The row order of q and k heads.
struct RopeRows {
  int head_dim = 0;
  int rope_dims = 0;
  bool interleaved = false;  // pairs (2i, 2i + 1) instead of (i, i + rope_dims / 2)
};

// Reads each tensor once and releases its file pages. Throws SetupError with the name of the
// tensor.
class WeightSource {
 public:
  WeightSource(const Checkpoint& checkpoint, LoadProgress progress,
               WeightUse use = WeightUse::kLoad);
  ~WeightSource();

  // The total for progress, if not all tensors are loaded.
  void set_total_bytes(uint64_t bytes) { total_bytes_ = bytes; }
  // Replaces these parts of names in all later lookups.
  void set_renames(std::vector<Rename> renames) { renames_ = std::move(renames); }

  // For checkpoints in another quantisation than MLX's.
  void set_quantization(QuantizationScheme scheme) { scheme_ = std::move(scheme); }

  // Merges an adapter into the matrices that are loaded from now on.
  void set_merged_adapter(std::unique_ptr<MergedAdapter> adapter);

  // The part of the outputs that this rank computes. The caller of matrix() and the others picks its
  // rows.
  void set_share(const OutputShare& share) { share_ = share; }
  const OutputShare& share() const { return share_; }

  bool has(const std::string& name) const;
  // Whether the file has a tensor of this name and shape.
  bool has_array(const std::string& name, const std::vector<int64_t>& shape) const;
  // The model does not need this tensor, which a file may have.
  void skip(const std::string& name);
  // After the last tensor: throws if a GGUF file has a tensor that the model should read but did not,
  // or if the model has no matrix for a module of the merged adapter, which is freed. Neither is
  // checked if `stage` is not the whole model.
  void finish(const DecoderPlan& plan, const StageRange& stage);

  // "<module>.weight" as [rows, cols], dense, MLX-quantised (with .scales and .biases) or GGUF
  // blocks; or the tensors of another quantisation (quantized/quantized_matrix.h). With a row order,
  // the result has as many rows as the order.
  Weight matrix(const std::string& module, int rows, int cols, RowOrder row_order = {});
  // One part of a fused matrix; of its rows those picked, or all.
  Weight matrix_part(const std::string& module, RowRange range, int rows, int cols,
                     RowOrder picks = {});
  // The same as matrix(), with each head's rows reordered for rope.h if the family or a GGUF file has
  // another order; then, of these rows those picked, or all.
  Weight rope_matrix(const std::string& module, int rows, int cols, const RopeRows& order,
                     RowOrder picks = {});

  // A matrix [rows, cols] whose tensor has other dimensions, `shape`, but the matrix's order after its
  // axes are transposed by `axes`: the kernel of a convolution. Not quantised.
  Weight transposed_matrix(const std::string& name, const std::vector<int64_t>& shape,
                           const std::vector<int>& axes, int rows, int cols);

  // Strips of a matrix that is loaded and stays.
  Weight copy_strips(const Weight& weight, std::span<const int> strips);

  // True if there is a matrix or a stack of this name: "<module>.weight", "<module>", or
  // "<module>_blocks" and "_scales" (gpt-oss).
  bool has_matrix(const std::string& module) const;
  // Loads a stack [shape.count, shape.rows, shape.cols], once per list of rows to take; an empty
  // list takes all rows.
  std::vector<ExpertStack> expert_stacks(const std::string& module, const MatrixShape& shape,
                                         std::span<const std::vector<int>> row_picks);
  // The same of the tensor `name` that is stored as [count, cols, rows]. Not quantised.
  std::vector<ExpertStack> turned_expert_stacks(const std::string& name, const MatrixShape& shape,
                                                std::span<const std::vector<int>> row_picks);
  // The same from one module per expert, with one list of rows.
  ExpertStack expert_stack(std::span<const std::string> modules, int rows, int cols,
                           RowOrder picks = {});
  // Vectors [count, size], once per list of entries to take, in the file's type.
  std::vector<mx::array> expert_vectors(const std::string& name, int count, int size,
                                        std::span<const std::vector<int>> picks);

  // A vector of `size` floats in the file's type; a GGUF file may have it with two axes. With an
  // order, entry i of the result is entry order[i] of the file, and it has as many entries.
  mx::array vector(const std::string& name, int size, RowOrder order = {});
  // The same in float32.
  mx::array float_vector(const std::string& name, int size, RowOrder order = {});
  // A tensor of floats of this shape, in the file's type; one number if the shape is empty. With kCheck
  // its numbers are not read.
  mx::array array(const std::string& name, const std::vector<int64_t>& shape);
  // A norm's weights, with `offset` added in float32.
  mx::array norm(const std::string& name, int size, float offset);
  mx::array rope_vector(const std::string& name, int size, const RopeRows& order,
                        RowOrder picks = {});
  // The value of a tensor of shape [1].
  float number(const std::string& name);
  // The weights of a depthwise convolution, [channels, 1, taps] in the file, [channels, taps, 1] if
  // converted by mlx-lm, or [channels, taps] in a GGUF file. Returns [taps, channels]; with an
  // order, channel i is channel order[i] of the file.
  mx::array conv_taps(const std::string& name, int channels, int taps, RowOrder order = {});

  // Bytes loaded so far, by description of the format ("q4_k", "bfloat16").
  const std::map<std::string, uint64_t>& bytes_by_format() const { return bytes_by_format_; }
  uint64_t loaded_bytes() const;

  bool only_checks() const { return use_ == WeightUse::kCheck; }
  // With kCheck: one message per tensor that is missing or has the wrong shape or type.
  const std::vector<std::string>& problems() const { return problems_; }
  // With kCheck: the tensors that loading would read, by their names in the file; true for matrices.
  const std::map<std::string, bool>& tensors_in_use() const { return tensors_in_use_; }

 private:
  std::string name_in_file(std::string name) const;
  // Null if there is none; otherwise the tensor counts as read.
  const TensorView* take(const std::string& name);
  const TensorView& tensor(const std::string& name);
  MatrixTensors tensors_of(const std::string& module);
  // For a matrix or a stack; with kCheck a view without data.
  MatrixTensors find_matrix(const std::string& module);
  WeightView view_of(const MatrixTensors& tensors, const MatrixShape& shape);
  WeightView open_view(const MatrixTensors& tensors, const MatrixShape& shape);
  // With the merged adapter, if it changes the matrix.
  Weight pack(const std::string& module, const MatrixTensors& tensors, const MatrixShape& shape,
              RowOrder row_order);
  // A tensor of floats of this shape; null if it is missing and that was recorded.
  const TensorView* find_floats(const std::string& name, const std::vector<int64_t>& shape);
  // Runs `work`. With kCheck, records a SetupError and returns false.
  bool attempt(const std::function<void()>& work);
  std::vector<int> order_of(int rows, const RopeRows& order) const;
  // `share`: fraction of the tensor that is loaded.
  void done_with(const TensorView& tensor, double share = 1);

  const Checkpoint& checkpoint_;
  LoadProgress progress_;
  WeightUse use_;
  std::vector<std::string> problems_;
  std::map<std::string, bool> tensors_in_use_;
  std::vector<Rename> renames_;
  QuantizationScheme scheme_;
  OutputShare share_;
  std::unique_ptr<MergedAdapter> merged_;  // null: none
  QuantizedMatrix converted_;              // the last matrix in another quantisation
  const GgufArchitecture* gguf_;           // null for safetensors
  std::set<const TensorView*> read_;
  uint64_t total_bytes_ = 0;
  uint64_t read_bytes_ = 0;
  std::map<std::string, uint64_t> bytes_by_format_;
};

}  // namespace octavo
