#include "kernels/metal/pipeline_cache.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/metal/norm_params.h"

namespace octavo::metal {
namespace {

struct NormArrays {
  mx::array x = mx::zeros({2, 64});
  mx::array weight = mx::zeros({64});
  mx::array out = mx::zeros({2, 64});
};

Launch norm_launch(const NormArrays& arrays, bool has_bias = false) {
  Launch launch("norm_rows", {DType::kFloat32, DType::kFloat32});
  launch.constant("kIsLayer", false)
      .constant("kHasBias", has_bias)
      .input("x", arrays.x)
      .input("weight", arrays.weight)
      .optional_input("bias", has_bias ? &arrays.weight : nullptr)
      .output("out", arrays.out)
      .bytes("params", NormParams{.cols = 64, .groups = 1, .eps = 1e-6f})
      .grid({2}, {32});
  return launch;
}

TEST(PipelineCache, APipelineIsCompiledOnce) {
  const NormArrays arrays;
  PipelineCache<int> cache;
  int compiled = 0;
  const auto compile = [&](const PipelineKey&) { return ++compiled; };
  const int64_t before = launch_counter("norm_rows.metal");
  EXPECT_EQ(cache.pipeline_of(norm_launch(arrays), compile), 1);
  EXPECT_EQ(cache.pipeline_of(norm_launch(arrays), compile), 1);
  EXPECT_EQ(cache.pipeline_of(norm_launch(arrays, true), compile), 2);
  EXPECT_EQ(cache.pipeline_of(norm_launch(arrays), compile), 1);
  EXPECT_EQ(launch_counter("norm_rows.metal") - before, 4);
}

TEST(PipelineCache, APipelineCompiledInAdvanceIsNotCompiledAgain) {
  const NormArrays arrays;
  PipelineCache<int> cache;
  const Launch launch = norm_launch(arrays);
  EXPECT_FALSE(cache.has(launch.key()));
  cache.add(launch.key(), 7);
  cache.add(launch.key(), 8);
  EXPECT_TRUE(cache.has(launch.key()));
  const int64_t before = launch_counter("norm_rows.metal");
  EXPECT_EQ(cache.pipeline_of(launch, [](const PipelineKey&) { return 9; }), 7);
  EXPECT_EQ(launch_counter("norm_rows.metal") - before, 1);
}

TEST(PipelineCache, EveryNewShapeIsChecked) {
  PipelineCache<int> cache;
  const auto compile = [](const PipelineKey&) { return 0; };
  NormArrays arrays;
  cache.pipeline_of(norm_launch(arrays), compile);
  Launch large = norm_launch(arrays);
  large.grid({2}, {2048});
  EXPECT_THROW(cache.pipeline_of(large, compile), std::logic_error);
  arrays.x = mx::zeros({2, 64}, mx::float16);
  EXPECT_THROW(cache.pipeline_of(norm_launch(arrays), compile), std::logic_error);
  EXPECT_THROW(cache.pipeline_of(norm_launch(arrays), compile), std::logic_error);
  arrays.x = mx::zeros({4, 64});  // another number of rows
  EXPECT_NO_THROW(cache.pipeline_of(norm_launch(arrays), compile));
}

}  // namespace
}  // namespace octavo::metal
