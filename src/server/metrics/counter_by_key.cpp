#include "server/metrics/counter_by_key.h"

#include <utility>

namespace octavo::server {

CounterByKey::CounterByKey(prometheus::Registry& registry, prometheus::Labels labels,
                           const char* name, const char* help)
    : family_(prometheus::BuildCounter().Name(name).Help(help).Register(registry)),
      labels_(std::move(labels)) {}

void CounterByKey::set_names(const std::set<std::string>& names) {
  for (const auto& [name, counter] : series_)
    if (!names.contains(name)) family_.Remove(counter);
  std::erase_if(series_, [&](const auto& each) { return !names.contains(each.first); });
  for (const std::string& name : names) add_name(name);
}

void CounterByKey::add_name(const std::string& name) {
  if (series_.contains(name)) return;
  prometheus::Labels labels = labels_;
  labels["key"] = name;
  series_[name] = &family_.Add(labels);
}

void CounterByKey::add(const std::string& name, double amount) {
  const auto found = series_.find(name);
  if (found != series_.end()) found->second->Increment(amount);
}

}  // namespace octavo::server
