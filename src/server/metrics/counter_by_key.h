// counter_by_key.h - a counter with one series per name of an API key. I/O thread only.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include <map>
#include <set>
#include <string>

namespace octavo::server {

class CounterByKey {
 public:
  // `labels`: of every series, besides the name. Exports nothing before the first name.
  CounterByKey(prometheus::Registry& registry, prometheus::Labels labels, const char* name,
               const char* help);
  CounterByKey(const CounterByKey&) = delete;
  CounterByKey& operator=(const CounterByKey&) = delete;

  // These names have series from now on, and no others.
  void set_names(const std::set<std::string>& names);
  void add_name(const std::string& name);
  // Does nothing for another name: its key was removed while the request was open.
  void add(const std::string& name, double amount);

 private:
  prometheus::Family<prometheus::Counter>& family_;
  const prometheus::Labels labels_;
  std::map<std::string, prometheus::Counter*> series_ = {};
};

}  // namespace octavo::server
