// named_events_of.h - parses what named_event.h writes, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/fields/json_text.h"

namespace octavo::api {

struct NamedEvent {
  std::string name;
  Json data;
};

inline std::vector<NamedEvent> named_events_of(const std::string& out) {
  constexpr std::string_view kEvent = "event: ";
  constexpr std::string_view kData = "\ndata: ";
  std::vector<NamedEvent> events;
  for (size_t at = 0; at < out.size();) {
    const size_t data = out.find(kData, at);
    const size_t end = out.find("\n\n", at);
    EXPECT_EQ(out.compare(at, kEvent.size(), kEvent), 0);
    EXPECT_LT(data, end);
    const size_t name = at + kEvent.size();
    const size_t text = data + kData.size();
    events.push_back({out.substr(name, data - name), Json::parse(out.substr(text, end - text))});
    at = end + 2;
  }
  return events;
}

}  // namespace octavo::api
