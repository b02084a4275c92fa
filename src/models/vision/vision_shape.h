// vision_shape.h - the sizes, options and tensor names of a vision tower as data. No MLX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/types/activation_kind.h"

namespace octavo {

struct VisionShape {
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int intermediate = 0;
  Activation activation = Activation::kGeluTanh;  // of the layers' MLPs
  float norm_eps = 1e-6f;
  float projector_eps = 1e-6f;
  float rope_theta = 0;  // 0: no rotation
  // Entries of the table of learned positions (Gemma 4: of each of the two), 0: none. Qwen's is a
  // square that is stretched over the image.
  int positions = 0;
  bool gated = false;           // the MLPs have a gate, and norms have no mean and no bias
  bool clipped = false;         // Gemma 4: inputs and outputs of linear layers are clamped
  bool standardised = false;    // Gemma 4: std_bias and std_scale
  bool projector_bias = false;  // Pixtral
  // Qwen3-VL: the layers whose outputs give each row further parts, in ascending order.
  std::vector<int> deepstack = {};
  bool channels_last = false;  // the first matrix is stored as MLX stores convolutions
  // Names of modules begin with these, dots included.
  std::string tower;      // "model.visual."
  std::string projector;  // "multi_modal_projector."; Qwen's projector is part of the tower

  int q_width() const { return heads * head_dim; }
  int kv_width() const { return kv_heads * head_dim; }
  int deepstack_parts() const { return static_cast<int>(deepstack.size()); }
  int qkv_width() const { return q_width() + 2 * kv_width(); }
  // Whether the tensor is the tower's or the projector's.
  bool owns(std::string_view tensor) const {
    return tensor.starts_with(tower) || (!projector.empty() && tensor.starts_with(projector));
  }
};

}  // namespace octavo
