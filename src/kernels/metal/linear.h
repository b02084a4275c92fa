// linear.h (metal) - launches linear.metal, integer_vector.metal or integer_matrix.metal: multiplies rows
// by packed weights.
#pragma once

#include <optional>
#include <vector>

#include "kernels/metal/encoder.h"
#include "kernels/metal/lora.h"
#include "kernels/types/activation_kind.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::metal {

struct LinearLayer {
  PackedLayout layout;  // with experts: of one expert's matrix
  mx::array weight;     // packed
  std::optional<mx::array> bias;
};

// Assigns rows to experts; computed on the device by expert_order.metal.
struct ExpertTiles {
  mx::array tiles;                // int32
  std::optional<mx::array> list;  // int32: row r of the tiles is row list[r] of x
  int most_tiles = 0;
  int tile_rows = 0;  // 1, 2, 4, 8 or kManyRows
};

inline constexpr int kManyRows = 32;  // rows per tile if there are more than 8 rows

// Up to four products of one x, adjacent in the output, or one gated pair.
struct LinearCall {
  mx::array x;       // [..., cols of the layers]
  int rows = 0;      // of x, without experts
  int heads = 1;     // divide layer 0's outputs equally; each head reads its own columns of x
  int x_head = 0;    // columns of x from one head to the next; 0: the columns it reads
  int out_head = 0;  // columns of out from one head to the next; 0: the columns it writes
  std::vector<LinearLayer> layers = {};
  bool is_gated = false;  // layers[0] is the gate, layers[1] is up
  Activation activation = Activation::kSilu;
  std::optional<LoraCall> lora = {};  // without experts and heads
  std::optional<mx::array> residual = {};
  float scale = 1;
  float soft_cap = 0;
  std::optional<ExpertTiles> experts = {};
  mx::array out;  // [rows, outputs], allocated
};

// Launches a kernel once per weight format among the layers.
void linear(const LinearCall& call, Encoder& encoder);

// Whether integer_vector.metal computes products of few rows, which is the default. integer_matrix.metal
// computes the same bits.
bool has_vector_products();
void set_vector_products(bool are_used);

}  // namespace octavo::metal
