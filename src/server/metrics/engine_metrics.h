// engine_metrics.h - the engine's statistics as Prometheus families, collected on each scrape.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "api/served_model.h"

namespace octavo::server {

class EngineMetrics : public prometheus::Collectable {
 public:
  // `model` must outlive this object. `labels` are added to every metric.
  EngineMetrics(const api::ServedModel& model, prometheus::Labels labels);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const api::ServedModel& model_;
  std::vector<prometheus::ClientMetric::Label> labels_;
};

}  // namespace octavo::server
