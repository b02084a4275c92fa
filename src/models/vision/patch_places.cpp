#include "models/vision/patch_places.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

// A place between two entries of a row of the table.
struct Between {
  int low = 0;
  int high = 0;
  float part = 0;  // of `high`
};

// Index `i` of `count`, the table stretched so that the first and the last entries meet.
Between between_entries(int i, int count, int side) {
  if (count < 2) return {};
  const double at = static_cast<double>(i) * (side - 1) / (count - 1);
  const int low = std::min(static_cast<int>(at), side - 1);
  return {low, std::min(low + 1, side - 1), static_cast<float>(at - low)};
}

PositionEntries stretched_entries(int positions, const std::vector<PatchPlace>& places, int grid_h,
                                  int grid_w) {
  constexpr size_t kCorners = 4;
  const int side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(positions))));
  PositionEntries entries;
  entries.indices.resize(kCorners);
  entries.weights.resize(kCorners);
  for (const PatchPlace& place : places) {
    const Between y = between_entries(place.row, grid_h, side);
    const Between x = between_entries(place.column, grid_w, side);
    const auto add = [&](size_t corner, int row, int column, float weight) {
      entries.indices[corner].push_back(row * side + column);
      entries.weights[corner].push_back(weight);
    };
    add(0, y.low, x.low, (1 - y.part) * (1 - x.part));
    add(1, y.low, x.high, (1 - y.part) * x.part);
    add(2, y.high, x.low, y.part * (1 - x.part));
    add(3, y.high, x.high, y.part * x.part);
  }
  return entries;
}

}  // namespace

std::vector<PatchPlace> patch_places(int grid_h, int grid_w, int merge) {
  std::vector<PatchPlace> places;
  places.reserve(static_cast<size_t>(grid_h) * static_cast<size_t>(grid_w));
  for (int top = 0; top < grid_h; top += merge) {
    for (int left = 0; left < grid_w; left += merge) {
      for (int i = 0; i < merge * merge; ++i)
        places.push_back({.row = top + i / merge, .column = left + i % merge});
    }
  }
  return places;
}

PositionEntries position_entries(const VisionPlan& plan, const std::vector<PatchPlace>& places,
                                 int grid_h, int grid_w) {
  const int positions = plan.shape.positions;
  if (plan.processor.family == ImageFamily::kQwen)
    return stretched_entries(positions, places, grid_h, grid_w);
  PositionEntries entries;
  if (positions == 0) return entries;
  if (plan.processor.family == ImageFamily::kGemma4) {
    entries.indices.resize(2);
    for (const PatchPlace& place : places) {
      entries.indices[0].push_back(place.column);
      entries.indices[1].push_back(positions + place.row);
    }
    return entries;
  }
  entries.indices.resize(1);
  for (const PatchPlace& place : places)
    entries.indices[0].push_back(place.row * grid_w + place.column);
  return entries;
}

}  // namespace octavo
