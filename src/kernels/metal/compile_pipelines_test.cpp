#include "kernels/metal/compile_pipelines.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/dtype.h"

namespace octavo::metal {
namespace {

std::vector<PipelineKey> keys_of(int count) {
  std::vector<PipelineKey> keys;
  for (int i = 0; i < count; ++i)
    keys.push_back({.kernel = &find_kernel("add_rows"), .types = {i}, .type_count = 1});
  return keys;
}

TEST(CompilePipelines, CompilesEachKeyOnceAndReportsProgress) {
  const std::vector<PipelineKey> keys = keys_of(100);
  std::mutex mutex;
  std::multiset<uint32_t> compiled;
  std::vector<size_t> reported;
  compile_on_threads(
      keys, 2,
      [&](const PipelineKey& key) {
        const std::lock_guard lock(mutex);
        compiled.insert(key.types[0].code());
      },
      [&](size_t done, size_t total) {
        EXPECT_EQ(total, 100u);
        reported.push_back(done);
      });
  EXPECT_EQ(compiled.size(), 100u);
  EXPECT_EQ(std::set(compiled.begin(), compiled.end()).size(), 100u);
  ASSERT_EQ(reported.size(), 100u);
  for (size_t i = 0; i < reported.size(); ++i) EXPECT_EQ(reported[i], i + 1);
}

TEST(CompilePipelines, AnErrorEndsTheWorkAndIsThrown) {
  const std::vector<PipelineKey> keys = keys_of(100);
  int compiled = 0;
  const auto compile = [&](const PipelineKey&) {
    if (++compiled == 3) throw std::runtime_error("no such function");
  };
  EXPECT_THROW(compile_on_threads(keys, 1, compile, [](size_t, size_t) {}), std::runtime_error);
  EXPECT_EQ(compiled, 3);
}

}  // namespace
}  // namespace octavo::metal
