#include "kernels/metal/pipeline_collector.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/metal/encoder.h"
#include "kernels/runtime/primitive.h"

namespace octavo::metal {
namespace {

// A launch that is not collected fails here: there is no simulator.
TEST(PipelineCollector, CollectsEachPipelineOnceAndRunsNothing) {
  const mx::array ids = mx::zeros({4}, mx::int32);
  mx::array out = mx::zeros({4}, mx::int32);
  mx::eval({ids, out});
  const auto place = [&](const mx::array& tokens) {
    Launch launch("place_tokens");
    launch.input("tokens", tokens)
        .input("sources", ids)
        .input("previous", ids)
        .output("out", out)
        .bytes("count", int32_t{4})
        .grid({1}, {32});
    return launch;
  };
  Encoder encoder(kernel_stream());
  {
    PipelineCollector collector;
    encoder.run(place(ids));
    encoder.run(place(ids));
    encoder.keep(encoder.temporary({8}, mx::float32));
    ASSERT_EQ(collector.pipelines().size(), 1u);
    EXPECT_EQ(collector.pipelines()[0].name(), "place_tokens");
    const mx::array wrong = mx::zeros({4}, mx::float32);
    EXPECT_THROW(encoder.run(place(wrong)), std::logic_error);
  }
  EXPECT_EQ(PipelineCollector::current(), nullptr);
}

}  // namespace
}  // namespace octavo::metal
