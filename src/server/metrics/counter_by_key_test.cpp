#include "server/metrics/counter_by_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace octavo::server {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CounterByKey, HasOneSeriesPerNameThatExists) {
  prometheus::Registry registry;
  CounterByKey counter(registry, {{"model_name", "m"}}, "c_total", "Counts");
  const auto text = [&] { return prometheus::TextSerializer().Serialize(registry.Collect()); };
  EXPECT_EQ(text(), "");
  counter.set_names({"", "alice", "bob"});
  counter.add("alice", 2);
  counter.set_names({"", "alice"});
  counter.add("alice", 3);
  counter.add("bob", 1);
  EXPECT_THAT(text(), HasSubstr("c_total{key=\"\",model_name=\"m\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("c_total{key=\"alice\",model_name=\"m\"} 5\n"));
  EXPECT_THAT(text(), Not(HasSubstr("bob")));
}

}  // namespace
}  // namespace octavo::server
