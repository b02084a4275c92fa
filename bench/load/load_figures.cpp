#include "bench/load/load_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "bench/roofline.h"

namespace octavo::bench {
namespace {

LatencySummary summary_of(const std::vector<double>& values, const std::vector<double>& percents) {
  LatencySummary summary;
  summary.percentiles.assign(percents.size(), 0.0);
  if (values.empty()) return summary;
  const auto count = static_cast<double>(values.size());
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  summary.median = percentile(values, 50);
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  summary.deviation = std::sqrt(squares / count);
  std::ranges::transform(percents, summary.percentiles.begin(),
                         [&](double percent) { return percentile(values, percent); });
  return summary;
}

// As in vLLM, seconds are counted from the first successful request.
class SecondCounts {
 public:
  explicit SecondCounts(double origin) : origin_(origin) {}

  void add(double time, double count) { at(index_of(time)) += count; }
  void add_span(double begin, double end) {
    for (size_t second = index_of(begin); second <= index_of(end); ++second) at(second) += 1;
  }
  const std::vector<double>& counts() const { return counts_; }
  double peak() const { return counts_.empty() ? 0 : *std::ranges::max_element(counts_); }

 private:
  size_t index_of(double time) const { return static_cast<size_t>(std::max(0.0, time - origin_)); }
  double& at(size_t second) {
    if (second >= counts_.size()) counts_.resize(second + 1, 0.0);
    return counts_[second];
  }

  double origin_;
  std::vector<double> counts_;
};

// A chunk may hold several tokens: each counts as the record's average.
void add_tokens(SecondCounts& tokens, const RequestRecord& record) {
  if (record.chunks.empty()) return;
  const double per_chunk =
      static_cast<double>(record.output_tokens) / static_cast<double>(record.chunks.size());
  for (const double time : record.chunks) tokens.add(time, per_chunk);
}

void find_peaks(const LoadResult& result, LoadFigures& figures) {
  double origin = std::numeric_limits<double>::max();
  for (const RequestRecord& record : result.records)
    if (record.answered()) origin = std::min(origin, record.sent);
  SecondCounts tokens(origin), open(origin);
  for (const RequestRecord& record : result.records) {
    if (!record.answered()) continue;
    add_tokens(tokens, record);
    open.add_span(record.sent, record.last);
  }
  // A run shorter than a second has no full second to count.
  figures.peak_output_tokens = std::max(tokens.peak(), figures.per_second(figures.output_tokens));
  figures.peak_concurrent = static_cast<size_t>(open.peak());
}

std::vector<FailureCount> failures_of(const LoadResult& result) {
  std::map<std::string, size_t> reasons;
  for (const RequestRecord& record : result.records)
    if (!record.answered()) ++reasons[record.failure];
  std::vector<FailureCount> failures;
  for (const auto& [reason, requests] : reasons) failures.push_back({reason, requests});
  std::ranges::stable_sort(failures, std::greater{}, &FailureCount::requests);
  return failures;
}

}  // namespace

bool ServiceLevel::keeps(const RequestRecord& record) const {
  const auto within = [](double seconds, const std::optional<double>& bound) {
    return !bound || seconds <= *bound;
  };
  return within(record.ttft(), ttft) && within(record.tpot(), tpot) && within(record.e2el(), e2el);
}

LoadFigures load_figures(const LoadResult& result, const std::vector<double>& percents,
                         const ServiceLevel& level) {
  LoadFigures figures{.seconds = result.seconds};
  std::vector<double> ttft, tpot, itl, e2el;
  for (const RequestRecord& record : result.records) {
    if (!record.answered()) continue;
    ++figures.completed;
    figures.good += level.keeps(record) ? 1 : 0;
    figures.chunks_counted += record.chunks_counted ? 1 : 0;
    figures.input_tokens += static_cast<uint64_t>(record.prompt_tokens);
    figures.output_tokens += static_cast<uint64_t>(record.output_tokens);
    ttft.push_back(record.ttft());
    e2el.push_back(record.e2el());
    if (record.output_tokens > 1) tpot.push_back(record.tpot());
    for (size_t i = 1; i < record.chunks.size(); ++i)
      itl.push_back(record.chunks[i] - record.chunks[i - 1]);
  }
  figures.failed = result.records.size() - figures.completed;
  figures.ttft = summary_of(ttft, percents);
  figures.tpot = summary_of(tpot, percents);
  figures.itl = summary_of(itl, percents);
  figures.e2el = summary_of(e2el, percents);
  figures.failures = failures_of(result);
  find_peaks(result, figures);
  return figures;
}

std::vector<double> output_by_second(const LoadResult& result) {
  SecondCounts tokens(0);
  for (const RequestRecord& record : result.records)
    if (record.answered()) add_tokens(tokens, record);
  return tokens.counts();
}

}  // namespace octavo::bench
