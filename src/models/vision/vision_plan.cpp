#include "models/vision/vision_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/widen.h"
#include "models/vision/patch_chunks.h"

namespace octavo {
namespace {

const char* title_of(ImageFamily family) {
  switch (family) {
    case ImageFamily::kQwen:
      return "Qwen";
    case ImageFamily::kGemma4:
      return "Gemma 4";
    case ImageFamily::kGemma3:
      return "SigLIP";
    case ImageFamily::kPixtral:
      return "Pixtral";
  }
  return "";
}

constexpr uint64_t kPageTokens = 16;

}  // namespace

std::string VisionPlan::describe() const {
  return fmt::format("{}, {} layers of {}, patches of {}", title_of(processor.family), shape.layers,
                     shape.hidden, processor.patch);
}

int VisionPlan::pieces(int grid_h, int grid_w, int rows_at_once) const {
  const PatchChunks chunks(grid_h * grid_w, processor.merge, rows_at_once);
  return (2 + shape.deepstack_parts()) * chunks.count() + shape.layers * chunks.pieces_per_layer();
}

uint64_t VisionPlan::pass_bytes(int grid_h, int grid_w, int rows_at_once, DType dtype) const {
  const PatchChunks chunks(grid_h * grid_w, processor.merge, rows_at_once);
  const uint64_t all = widen(chunks.patches());
  const uint64_t rows = widen(chunks.rows(0));
  const uint64_t number = size_of(dtype);
  const uint64_t hidden = widen(shape.hidden);
  const uint64_t patch = widen(processor.patch_numbers());
  const uint64_t q = widen(shape.q_width());
  const uint64_t kv = 2 * widen(shape.kv_width());
  const uint64_t inner = widen(shape.intermediate) * (shape.gated && !shape.clipped ? 1 : 2);
  const uint64_t pages = (all + kPageTokens - 1) / kPageTokens * kPageTokens * kv * number;

  // Patches in float32, and a piece's: their copy, or in the model's type, with the learned positions of
  // four corners in both types and the result.
  const uint64_t embedding =
      all * patch * sizeof(float) +
      rows * std::max(patch * sizeof(float),
                      patch * number + hidden * (5 * sizeof(float) + 6 * number));
  // The rows and all queries, and a piece's products. With clamps, also the clamped inputs and outputs.
  const uint64_t writing = q + kv + (shape.clipped ? 4 * hidden + q + kv : 0);
  const uint64_t attending =
      q + 4 * hidden + inner + (shape.clipped ? q + 4 * hidden + 2 * inner : 0);
  const uint64_t piece = chunks.count() == 1 ? writing + attending : std::max(writing, attending);
  const uint64_t blocks = widen(processor.merge * processor.merge);
  // The parts of rows that are complete, and with the last one all of them before they are joined.
  const uint64_t part = all / blocks * widen(text_hidden) * number;
  const uint64_t parts = widen(shape.deepstack_parts()) * part;
  const uint64_t joined = parts == 0 ? 0 : parts + part;
  const uint64_t layers = all * (hidden + q) * number + rows * piece * number + parts;
  // A piece's rows after the norm, in float32 where patches are averaged, and after each matrix.
  const uint64_t averaged =
      processor.family == ImageFamily::kQwen || processor.family == ImageFamily::kPixtral
          ? number
          : 3 * sizeof(float);
  const uint64_t projecting = all * hidden * number + rows * hidden * (2 * number + averaged) +
                              rows / blocks * widen(text_hidden) * 3 * number + joined;
  return pages + std::max({embedding, layers, projecting});
}

}  // namespace octavo
