#include "models/vision/vision_tower.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "kernels/runtime/device_buffer.h"
#include "models/vision/image_projection.h"
#include "models/vision/patch_chunks.h"
#include "models/vision/patch_embedding.h"
#include "models/vision/patch_places.h"
#include "models/vision/vision_layer.h"

namespace octavo {
namespace {

struct TowerParts {
  VisionPlan plan;
  DType dtype;
  std::optional<VisionRope> rope;
  PatchEmbedding embedding;
  std::vector<VisionLayer> layers;
  std::unique_ptr<ImageProjection> projection;
  std::vector<std::unique_ptr<ImageProjection>> deepstack;
};

mx::array ints_of(const std::vector<int>& values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

// Pieces in this order: the embedding of each chunk; in each layer, the keys of each chunk, then the
// rest of each chunk (both at once if there is only one), and then the deepstack projection of each
// chunk, if the layer has one; the projection of each chunk.
class TowerPass : public VisionPass {
 public:
  TowerPass(std::shared_ptr<const TowerParts> parts, const ImagePatches& patches, int rows_at_once,
            KernelPath path)
      : parts_(std::move(parts)),
        path_(path),
        chunks_(patches.grid_h * patches.grid_w, parts_->plan.processor.merge, rows_at_once),
        pieces_(parts_->plan.pieces(patches.grid_h, patches.grid_w, rows_at_once)),
        places_(patch_places(patches.grid_h, patches.grid_w, parts_->plan.processor.merge)),
        entries_(position_entries(parts_->plan, places_, patches.grid_h, patches.grid_w)),
        pages_(make_pages()),
        table_(make_table()),
        parts_of_rows_(static_cast<size_t>(parts_->plan.row_parts())) {
    take_patches(patches);
  }

  std::vector<mx::array> queue_piece() override {
    OCTAVO_CHECK(queued_ < pieces_);
    const int piece = queued_++;
    const int count = chunks_.count();
    if (piece < count) return {embed(piece)};
    if (piece >= pieces_ - count) return {project(piece - (pieces_ - count))};
    const int step = step_in_layer();
    const int after_layer = step - chunks_.pieces_per_layer();
    const VisionLayer& layer = parts_->layers[layer_];
    if (after_layer >= 0) return {project_deepstack(after_layer)};
    if (count > 1) return step < count ? write(layer, step) : finish(layer, step - count);
    write(layer, 0);
    return finish(layer, 0);
  }

  mx::array rows() const override {
    OCTAVO_CHECK(queued_ == pieces_);
    std::vector<mx::array> parts;
    for (const auto& chunks : parts_of_rows_)
      parts.push_back(chunks.size() == 1 ? chunks.front() : mx::concatenate(chunks, 0));
    return parts.size() == 1 ? parts.front() : mx::concatenate(parts, 1);
  }

 private:
  KvPages make_pages() const {
    const VisionShape& shape = parts_->plan.shape;
    const PageGeometry geometry{.kv_heads = shape.kv_heads,
                                .k_dim = shape.head_dim,
                                .v_dim = shape.head_dim,
                                .dtype = parts_->dtype};
    const int pages = page_count(geometry);
    return {make_device_buffer({pages, static_cast<int>(geometry.page_bytes())}, mx::uint8),
            geometry, path_};
  }
  int page_count(const PageGeometry& geometry) const {
    return (chunks_.patches() + geometry.block_tokens - 1) / geometry.block_tokens;
  }
  mx::array make_table() const {
    std::vector<int> pages(static_cast<size_t>(page_count(pages_.geometry)));
    std::iota(pages.begin(), pages.end(), 0);
    return mx::reshape(ints_of(pages), {1, static_cast<int>(pages.size())});
  }

  // Copies the patches in the order of places_.
  void take_patches(const ImagePatches& patches) {
    const auto numbers = static_cast<size_t>(parts_->plan.processor.patch_numbers());
    OCTAVO_CHECK(patches.values.size() == places_.size() * numbers);
    const bool is_in_blocks = parts_->plan.processor.family == ImageFamily::kQwen;
    for (int chunk = 0; chunk < chunks_.count(); ++chunk) {
      const auto rows = static_cast<size_t>(chunks_.rows(chunk));
      std::vector<float> values(rows * numbers);
      for (size_t i = 0; i < rows; ++i) {
        const size_t at = static_cast<size_t>(chunks_.first(chunk)) + i;
        const PatchPlace& place = places_[at];
        const size_t from =
            is_in_blocks ? at : static_cast<size_t>(place.row * patches.grid_w + place.column);
        std::copy_n(patches.values.begin() + static_cast<ptrdiff_t>(from * numbers), numbers,
                    values.begin() + static_cast<ptrdiff_t>(i * numbers));
      }
      x_.emplace_back(values.begin(), mx::Shape{static_cast<int>(rows), static_cast<int>(numbers)},
                      mx::float32);
    }
  }

  mx::array& chunk_of(int chunk) { return x_[static_cast<size_t>(chunk)]; }

  mx::array embed(int chunk) {
    mx::array& x = chunk_of(chunk);
    x = parts_->embedding.forward(x, entries_, chunks_.first(chunk), mlx_dtype(parts_->dtype),
                                  path_);
    return x;
  }

  // The rows of a chunk in a sequence of `context` patches, at whose end they are.
  BatchLayout layout_of(int chunk, int context) const {
    const int rows = chunks_.rows(chunk);
    std::vector<int> positions(static_cast<size_t>(rows));
    std::iota(positions.begin(), positions.end(), context - rows);
    return {.positions = ints_of(positions),
            .cu_seqlens_q = ints_of({0, rows}),
            .context_lens = ints_of({context})};
  }

  // Rows and columns of a chunk's patches: [2, rows]. Not reshaped: Metal's rotations read them on the
  // host.
  mx::array places_of(int chunk) const {
    const auto rows = static_cast<size_t>(chunks_.rows(chunk));
    std::vector<int> numbers(2 * rows);
    for (size_t i = 0; i < rows; ++i) {
      const PatchPlace& place = places_[static_cast<size_t>(chunks_.first(chunk)) + i];
      numbers[i] = place.row;
      numbers[rows + i] = place.column;
    }
    return mx::array(numbers.begin(), mx::Shape{2, static_cast<int>(rows)}, mx::int32);
  }

  // The part of the rows that the current layer gives; 0: none.
  size_t deepstack_part() const {
    const std::vector<int>& layers = parts_->plan.shape.deepstack;
    const auto found = std::ranges::find(layers, static_cast<int>(layer_));
    return found == layers.end() ? 0 : static_cast<size_t>(found - layers.begin()) + 1;
  }

  // Of the next piece; goes on to the next layer after the last piece of one.
  int step_in_layer() {
    const int pieces = chunks_.pieces_per_layer() + (deepstack_part() > 0 ? chunks_.count() : 0);
    if (step_ == pieces) {
      ++layer_;
      step_ = 0;
    }
    return step_++;
  }

  std::vector<mx::array> write(const VisionLayer& layer, int chunk) {
    BatchLayout layout = layout_of(chunk, chunks_.first(chunk) + chunks_.rows(chunk));
    if (parts_->rope) layout.rope_positions = places_of(chunk);
    VisionLayer::Written written =
        layer.write(chunk_of(chunk), pages_, layout, table_, parts_->rope);
    pages_ = written.pages;
    q_.push_back(written.q);
    return {written.q, written.pages.bytes};
  }

  // A row of the attention has no place of its own: each sees all patches.
  std::vector<mx::array> finish(const VisionLayer& layer, int chunk) {
    const int patches = chunks_.patches();
    BatchLayout layout = layout_of(chunk, patches);
    layout.last_visible =
        ints_of(std::vector<int>(static_cast<size_t>(chunks_.rows(chunk)), patches - 1));
    mx::array& x = chunk_of(chunk);
    x = layer.finish(x, q_[static_cast<size_t>(chunk)], pages_, layout, table_);
    if (chunk + 1 == chunks_.count()) q_.clear();
    return {x};
  }

  mx::array project_deepstack(int chunk) {
    const size_t part = deepstack_part();
    const ImageProjection& projection = *parts_->deepstack[part - 1];
    parts_of_rows_[part].push_back(projection.forward(chunk_of(chunk), path_));
    return parts_of_rows_[part].back();
  }

  mx::array project(int chunk) {
    std::vector<mx::array>& rows = parts_of_rows_.front();
    rows.push_back(parts_->projection->forward(chunk_of(chunk), path_));
    if (chunk + 1 == chunks_.count()) x_.clear();
    return rows.back();
  }

  std::shared_ptr<const TowerParts> parts_;
  KernelPath path_;
  PatchChunks chunks_;
  int pieces_;
  int queued_ = 0;
  size_t layer_ = 0;  // the current one
  int step_ = 0;      // pieces of it that were queued
  std::vector<PatchPlace> places_;
  PositionEntries entries_;
  KvPages pages_;  // of the current layer
  mx::array table_;
  std::vector<mx::array> x_;  // by chunk: patches, then the rows after the last layer that finished
  std::vector<mx::array> q_;  // by chunk: of the current layer
  std::vector<std::vector<mx::array>> parts_of_rows_;  // by part and chunk: the result
};

class LoadedTower : public VisionTower {
 public:
  explicit LoadedTower(std::shared_ptr<const TowerParts> parts) : parts_(std::move(parts)) {}

  std::unique_ptr<VisionPass> begin(const ImagePatches& patches, int rows_at_once,
                                    KernelPath path) const override {
    return std::make_unique<TowerPass>(parts_, patches, rows_at_once, path);
  }

 private:
  std::shared_ptr<const TowerParts> parts_;
};

}  // namespace

std::unique_ptr<VisionTower> load_vision_tower(const VisionPlan& plan, DType dtype,
                                               WeightSource& source) {
  source.set_renames({});  // those of the language model
  PatchEmbedding embedding(plan, source);
  std::vector<VisionLayer> layers;
  for (int i = 0; i < plan.shape.layers; ++i) layers.emplace_back(plan, i, source);
  return std::make_unique<LoadedTower>(
      std::make_shared<TowerParts>(TowerParts{.plan = plan,
                                              .dtype = dtype,
                                              .rope = make_vision_rope(plan),
                                              .embedding = std::move(embedding),
                                              .layers = std::move(layers),
                                              .projection = load_image_projection(plan, source),
                                              .deepstack = load_deepstack(plan, source)}));
}

}  // namespace octavo
