// metrics_text.h - reads the samples of /metrics. No MLX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct MetricSample {
  std::string name = {};   // "vllm:num_requests_running"
  std::string model = {};  // of the label model_name; empty without one
  double value = 0;
};

// Samples of Prometheus' text format. Lines that are none are skipped.
std::vector<MetricSample> read_metrics(std::string_view text);

// The sum of a metric's samples of one model.
double sum_of(const std::vector<MetricSample>& samples, std::string_view name,
              std::string_view model);

}  // namespace octavo
