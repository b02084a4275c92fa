// merged_metrics.h - the metrics of several processes as one page in Prometheus' text format. No MLX.
#pragma once

#include <string>
#include <vector>

namespace octavo::front {

struct MetricsPage {
  std::string model = {};  // added as the label model_name to samples without one; empty: none
  std::string text = {};
};

// Every family once, with the help and type of the first page that has it.
std::string merged_metrics(const std::vector<MetricsPage>& pages);

}  // namespace octavo::front
