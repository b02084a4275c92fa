#include "kernels/cpu/cut.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {
namespace {

constexpr size_t kListed = 8192;       // logits worth copying out of the row
constexpr size_t kSorted = 64;         // logits worth sorting
constexpr int kRounds = 16;            // then the rest is listed, or sorted
constexpr size_t kSampledRow = 32768;  // logits worth a guess
constexpr size_t kSampleStep = 64;

// Some of a row's logits, in the row's order.
struct Extract {
  std::vector<int32_t> indices;
  std::vector<float> logits;
  std::vector<float> weights;
};

// The logits still searched: the row, later an extract of it.
struct Part {
  std::span<const float> logits;
  std::span<const float> maxima;  // empty: not known
  const float* weights = nullptr;
  const int32_t* indices = nullptr;  // in the row; null: this is the row
  double above = 0;                  // the weight of the logits larger than all in this part
};

// Indices in the part of the logits in `range`. Returns false if there are more than `most`; then
// `out` is incomplete.
bool list_within(const Part& part, LogitRange range, size_t most, std::vector<int32_t>& out) {
  out.clear();
  size_t found = 0;
  for (size_t i = 0; i < part.logits.size(); i += kLogitBlock) {
    if (!part.maxima.empty() && !(part.maxima[i / kLogitBlock] >= range.from)) continue;
    if (found > most) return false;
    const size_t count = std::min<size_t>(kLogitBlock, part.logits.size() - i);
    if (out.size() < found + kLogitBlock) out.resize(2 * (found + kLogitBlock));
    found += static_cast<size_t>(
        kernels().indices_within(part.logits.data() + i, static_cast<int64_t>(count), range,
                                 static_cast<int32_t>(i), out.data() + found));
  }
  out.resize(found);
  return found <= most;
}

// The logits of `part` at `out.indices`, with their weights; the indices become the row's.
Part extract(const Part& part, Extract& out) {
  out.logits.resize(out.indices.size());
  out.weights.resize(out.indices.size());
  for (size_t i = 0; i < out.indices.size(); ++i) {
    const auto at = static_cast<size_t>(out.indices[i]);
    out.logits[i] = part.logits[at];
    if (part.weights != nullptr) out.weights[i] = part.weights[at];
    if (part.indices != nullptr) out.indices[i] = part.indices[at];
  }
  return {.logits = out.logits,
          .maxima = {},
          .weights = part.weights != nullptr ? out.weights.data() : nullptr,
          .indices = out.indices.data(),
          .above = 0};
}

// The cut is in `range`; `above` is the weight of logits >= range.to.
struct Bounds {
  LogitRange range;
  double above = 0;
};

using Thresholds = std::array<float, kThresholds>;

std::array<double, kThresholds> sums_from(const Part& part, const Thresholds& thresholds) {
  std::array<double, kThresholds> sums = {};
  const size_t size = part.logits.size();
  const auto reaches = [&](size_t at) {
    return part.maxima.empty() || part.maxima[at / kLogitBlock] >= thresholds.front();
  };
  for (size_t begin = 0; begin < size;) {
    size_t end = begin;  // of the blocks from here that reach any threshold
    while (end < size && reaches(end)) end += kLogitBlock;
    end = std::min(end, size);
    if (begin < end) {
      std::array<double, kThresholds> more = {};
      kernels().sums_from(part.logits.data() + begin,
                          part.weights != nullptr ? part.weights + begin : nullptr,
                          static_cast<int64_t>(end - begin), thresholds.data(), more.data());
      for (size_t t = 0; t < kThresholds; ++t) sums[t] += more[t];
    }
    begin = end + kLogitBlock;
  }
  return sums;
}

// Evenly spaced, the outermost `margin` steps inside the range.
Thresholds spread(LogitRange range, int margin) {
  Thresholds thresholds = {};
  const auto from = static_cast<double>(range.from);
  const double step = (static_cast<double>(range.to) - from) / (kThresholds - 1 + 2 * margin);
  for (int t = 0; t < kThresholds; ++t)
    thresholds[static_cast<size_t>(t)] = static_cast<float>(from + step * (t + margin));
  return thresholds;
}

// Whether there is a float between its ends.
bool divisible(LogitRange range) { return next_above(range.from) < range.to; }

// Narrows to the part between two adjacent thresholds, or outside all, that contains the cut.
void narrow(const Part& part, double target, const Thresholds& thresholds, Bounds& bounds) {
  const auto sums = sums_from(part, thresholds);
  for (size_t t = kThresholds; t-- > 0;) {
    const double reached = part.above + sums[t];
    if (reached >= target) {
      bounds.range.from = thresholds[t];
      return;
    }
    bounds.range.to = thresholds[t];
    bounds.above = reached;
  }
}

// The cut of a part that contains the whole range. If the range is empty, rounding of the sums
// placed the cut between two logits: then all logits >= range.to are kept.
Cut walk(const Part& part, LogitRange range, double target) {
  std::vector<int32_t> order(part.logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto logit = [&](int32_t at) { return part.logits[static_cast<size_t>(at)]; };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  double reached = part.above;
  Cut cut{.logit = range.to, .index = std::numeric_limits<int32_t>::max()};
  for (int32_t at : order) {
    cut = {.logit = logit(at), .index = part.indices[at]};
    reached += part.weights != nullptr ? static_cast<double>(part.weights[at]) : 1.0;
    if (reached >= target) break;
  }
  return cut;
}

// The cut of a part of at most kListed logits.
Cut search_list(Part part, Bounds bounds, double target) {
  thread_local std::array<Extract, 2> extracts;
  for (size_t round = 0;; ++round) {
    Extract& next = extracts[round % 2];
    list_within(part, bounds.range, part.logits.size(), next.indices);
    part = extract(part, next);
    part.above = bounds.above;
    if (part.logits.size() <= kSorted || round >= kRounds || !divisible(bounds.range))
      return walk(part, bounds.range, target);
    narrow(part, target, spread(bounds.range, 1), bounds);
  }
}

// Every kSampleStep-th sixteen of a row.
Part sample_of(const Part& row, Extract& out) {
  constexpr size_t kRun = 16;
  out.indices.clear();
  for (size_t begin = 0; begin + kRun <= row.logits.size(); begin += kRun * kSampleStep)
    for (size_t i = begin; i < begin + kRun; ++i) out.indices.push_back(static_cast<int32_t>(i));
  return extract(row, out);
}

// Thresholds around the cut of a sample of the row, or spread over the range if the sample does not
// represent the row. A wrong guess costs time only.
Thresholds guess(const Part& row, const Bounds& bounds, double target, double total) {
  thread_local Extract storage;
  const Part sample = sample_of(row, storage);
  double sampled = 0;
  double squares = 0;
  for (size_t i = 0; i < sample.logits.size(); ++i) {
    const double weight = sample.weights != nullptr ? static_cast<double>(sample.weights[i]) : 1;
    sampled += weight;
    squares += weight * weight;
  }
  if (std::abs(sampled * kSampleStep - total) > 0.1 * total) return spread(bounds.range, 1);
  const double part = target / total;
  // Three standard deviations; a few heavy logits make a sample of this size less reliable.
  const double doubt = 3 * std::sqrt(part * (1 - part) * squares) / sampled;
  LogitRange near = bounds.range;
  if (part + doubt < 1) near.from = search_list(sample, bounds, (part + doubt) * sampled).logit;
  if (part - doubt > 0) near.to = search_list(sample, bounds, (part - doubt) * sampled).logit;
  return spread(near, 0);
}

}  // namespace

float next_above(float value) {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  if (std::abs(value) < kSmallest) return kSmallest;
  const float next = std::nextafter(value, kInfinity);
  return std::abs(next) < kSmallest ? 0 : next;
}

float find_maxima(std::span<const float> logits, std::vector<float>& maxima) {
  maxima.resize((logits.size() + kLogitBlock - 1) / kLogitBlock);
  kernels().block_maxima(logits.data(), static_cast<int64_t>(logits.size()), maxima.data());
  return maxima.empty() ? -kInfinity : *std::max_element(maxima.begin(), maxima.end());
}

float reached_by(std::span<const float> maxima, int64_t count) {
  if (count > static_cast<int64_t>(maxima.size())) return -kInfinity;
  thread_local std::vector<float> sorted;
  sorted.assign(maxima.begin(), maxima.end());
  const auto last = sorted.begin() + (count - 1);
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
  return *last;
}

void indices_from(const LogitRow& row, float from, std::vector<int32_t>& out) {
  list_within({.logits = row.logits, .maxima = row.maxima}, {.from = from, .to = kInfinity},
              row.logits.size(), out);
}

Cut find_cut(const CutSearch& search) {
  const Part row{
      .logits = search.row.logits, .maxima = search.row.maxima, .weights = search.weights};
  Bounds bounds{.range = {.from = search.lowest, .to = next_above(search.largest)}};
  // A positive target keeps at least one logit.
  const double target = std::max(search.target, std::numeric_limits<double>::min());
  thread_local Extract storage;
  for (int round = 0;; ++round) {
    const bool last = round >= kRounds || !divisible(bounds.range);
    if (list_within(row, bounds.range, last ? row.logits.size() : kListed, storage.indices)) break;
    const bool guessed = round == 0 && row.logits.size() >= kSampledRow;
    narrow(row, target,
           guessed ? guess(row, bounds, target, search.total) : spread(bounds.range, 1), bounds);
  }
  Part list = extract(row, storage);
  list.above = bounds.above;
  return search_list(list, bounds, target);
}

}  // namespace octavo::cpu
