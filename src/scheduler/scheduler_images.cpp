// The part of Scheduler that encodes images and gives their rows to sequences.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "scheduler/image_positions.h"
#include "scheduler/scheduler.h"

namespace octavo {
namespace {

// Beside other requests, a background request's images get a piece in one of so many steps.
constexpr uint64_t kStepsPerBackgroundPiece = 8;

// The rows of `image` among `rows` rows from position `start` on, which begin at `first_row`. With breaks,
// those of each of its lines.
template <typename Visit>  // void(ImageRows), without the image's id
void each_part(const PromptImage& image, int start, int rows, int first_row, const Visit& visit) {
  const int width = image.row_breaks ? image.grid_w : image.rows();
  const int lines = image.row_breaks ? image.grid_h : 1;
  for (int line = 0; line < lines; ++line) {
    const int begin = image.offset + line * (width + 1);
    const int from = std::max(begin, start);
    const int to = std::min(begin + width, start + rows);
    if (from >= to) continue;
    visit(ImageRows{
        .row = first_row + from - start, .first = line * width + from - begin, .count = to - from});
  }
}

bool overlaps(const PromptImage& image, int start, int end) {
  return image.offset < end && image.last_row() >= start;
}

}  // namespace

int Scheduler::rows_with_images(const Sequence& sequence, int rows, const Plan& plan) const {
  const int start = sequence.computed();
  for (const PromptImage& image : sequence.request().images) {
    // If there is no row left, an image that comes next counts, too: it may exceed the limit.
    if (!overlaps(image, start, start + std::max(rows, 1))) continue;
    const int before = std::max(0, image.offset - start);
    if (image_store_.find(image.identifier) == 0) return before;
    if (!options_.images.sees_block || image.last_row() < start + rows) continue;
    if (before > 0) return before;
    // The limit of background rows would never let it fit.
    const bool exceeds = plan.beside_others && stats_.steps % kStepsPerBackgroundPiece == 0;
    const int whole = image.last_row() + 1 - start;
    return exceeds && whole <= plan.left ? whole : 0;
  }
  return rows;
}

void Scheduler::place_images(const Sequence& sequence, int first_row, int start, Plan& plan) {
  const auto& images = sequence.request().images;
  if (images.empty()) return;
  const int rows = plan.batch.rows() - first_row;
  for (const PromptImage& image : images) {
    if (!overlaps(image, start, start + rows)) continue;
    const ImageId id = image_store_.find(image.identifier);
    OCTAVO_CHECK(id != 0);
    image_store_.use(image.identifier, stats_.steps);
    each_part(image, start, rows, first_row, [&](ImageRows part) {
      part.image = id;
      plan.batch.place_image(part);
      if (!options_.images.sees_block) return;
      for (int row = part.row; row < part.row + part.count; ++row)
        plan.batch.set_last_visible(row, image.last_row());
    });
  }
  if (!options_.images.three_axes) return;
  for (int row = 0; row < rows; ++row) {
    if (start + row >= images.front().offset)
      plan.batch.set_rope(first_row + row, rope_position(images, start + row));
  }
}

std::vector<ImageStore::Wanted> Scheduler::wanted_images() const {
  std::vector<ImageStore::Wanted> wanted;
  for (const auto& [rank, sequence] : running_) {
    if (sequence->preempted) continue;
    if (!suspects_.empty() && sequence != suspects_.front()) continue;
    if (const PromptImage* image = sequence->next_image())
      wanted.push_back({.image = image, .background = rank.background});
  }
  return wanted;
}

void Scheduler::encode_images(Plan& plan) {
  if (!options_.images.enabled || !plan.image_work.empty()) return;
  const auto wanted = wanted_images();
  // A suspect runs alone, and no other step would let the turn of its image come.
  const bool beside_others =
      suspects_.empty() && !running_.empty() && !running_.begin()->first.background;
  if (!wanted.empty() && wanted.front().background && beside_others &&
      stats_.steps % kStepsPerBackgroundPiece != 0)
    return;
  plan.image_work = image_store_.plan(wanted, stats_.steps);
  if (plan.image_work.encodes != 0) plan.step.image = image_store_.newest();
}

std::vector<Sequence*> Scheduler::waiting_for_image(const Step& step) const {
  std::vector<Sequence*> found;
  if (step.image.empty()) return found;
  for (const auto& [rank, sequence] : running_) {
    const PromptImage* image = sequence->next_image();
    if (image != nullptr && image->identifier == step.image) found.push_back(sequence);
  }
  return found;
}

int Scheduler::pages_reserved_for_images(const std::vector<Sequence*>& without) const {
  if (!options_.images.enabled) return 0;
  int pages = 0;
  for (const auto& [rank, sequence] : running_) {
    if (sequence->next_image() != nullptr && std::ranges::find(without, sequence) == without.end())
      pages += sequence->missing_pages(prefixes_.plan(), options_.max_num_batched_tokens);
  }
  return pages;
}

bool Scheduler::waits_for_choice(const Sequence& sequence) const {
  if (sequence.choice() == 0 || sequence.request().images.empty()) return false;
  return std::ranges::any_of(running_, [&](const auto& entry) {
    return entry.first.arrival == sequence.shared().id && entry.first.choice < sequence.choice() &&
           !entry.second->preempted && entry.second->next_image() != nullptr;
  });
}

void Scheduler::count_images(const Sequence& sequence, int hit) {
  for (const PromptImage& image : sequence.request().images) {
    if (image.last_row() < hit) continue;
    ++stats_.image_queries;
    if (image_store_.has(image.identifier)) ++stats_.image_hits;
  }
}

}  // namespace octavo
