#include "front/merged_metrics.h"

#include <gtest/gtest.h>

namespace octavo::front {
namespace {

TEST(MergedMetrics, EveryFamilyOnceAndEverySampleWithItsModel) {
  const MetricsPage own{.text = "# HELP own Own\n# TYPE own counter\nown{route=\"/\"} 1\n"};
  const std::string child =
      "# HELP a Help of a\n# TYPE a histogram\na_bucket{model_name=\"x\",le=\"1\"} 2\na_sum 3\n"
      "# HELP b Help of b\n# TYPE b gauge\nb{} 4\nb{k=\"v\"} 5\n";
  EXPECT_EQ(merged_metrics({own, {"x", child}, {"y\"", child}}),
            "# HELP own Own\n# TYPE own counter\nown{route=\"/\"} 1\n"
            "# HELP a Help of a\n# TYPE a histogram\n"
            "a_bucket{model_name=\"x\",le=\"1\"} 2\na_sum{model_name=\"x\"} 3\n"
            "a_bucket{model_name=\"x\",le=\"1\"} 2\na_sum{model_name=\"y\\\"\"} 3\n"
            "# HELP b Help of b\n# TYPE b gauge\n"
            "b{model_name=\"x\"} 4\nb{model_name=\"x\",k=\"v\"} 5\n"
            "b{model_name=\"y\\\"\"} 4\nb{model_name=\"y\\\"\",k=\"v\"} 5\n");
}

TEST(MergedMetrics, TheOwnFamilyMayAlsoBeAChilds) {
  const std::string text = "# HELP a A\n# TYPE a counter\na 1\n";
  EXPECT_EQ(merged_metrics({{"", text}, {"x", text}}),
            "# HELP a A\n# TYPE a counter\na 1\na{model_name=\"x\"} 1\n");
}

}  // namespace
}  // namespace octavo::front
