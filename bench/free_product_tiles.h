// free_product_tiles.h - the tile loops of the free product, over raw memory. No MLX.
#pragma once

#include <cstdint>

namespace octavo::bench {

inline constexpr int kTileRows = 16;   // rows of x, outputs of the weight
inline constexpr int kTileDepth = 32;  // inputs

struct FreeJob {
  const uint16_t* x = nullptr;       // [rows, cols]
  uint16_t* tiles = nullptr;         // x as [row_tiles][cols / 32] tiles of [16 rows][32]
  const uint16_t* weight = nullptr;  // [outputs / 16][cols / 32] tiles of [16 pairs][16 outputs][2]
  int rows = 0;                      // written to out
  int row_tiles = 0;
  int cols = 0;
  int outputs = 0;
  uint16_t* out = nullptr;  // [rows, outputs]
};

// A box of the product: tiles of rows, of outputs (an even number) and of inputs.
struct Box {
  int row_begin, row_end;
  int output_begin, output_end;
  int depth_begin, depth_end;
};

void pack_free(const uint16_t* weight, int outputs, int cols, uint16_t* packed);

// Fills row tiles [begin, end), with zeros past the last row.
void pack_rows(const FreeJob& job, int begin, int end);

// Writes the box's sums to `sums` ([row_tiles * 16, outputs] float32), or rounded to out if null.
void multiply_box(const FreeJob& job, const Box& box, float* sums);

// out = a + b, over rows [begin, end).
void add_sums(const FreeJob& job, const float* a, const float* b, int begin, int end);

}  // namespace octavo::bench
