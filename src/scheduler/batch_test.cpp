#include "scheduler/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::ElementsAre;

TEST(BatchBuilder, ConcatenatesSequences) {
  const CachePlan plan =
      plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}}, 8);
  PagePool pool(8);
  SequencePages prefill(plan, pool);
  SequencePages decode(plan, pool);
  ASSERT_TRUE(prefill.grow_to(3));
  ASSERT_TRUE(decode.grow_to(10));

  BatchBuilder builder(plan);
  const int first = builder.add_sequence(std::vector<TokenId>{5, 6, 7}, 0, prefill);
  const int second = builder.add_sequence(std::vector<TokenId>{9}, 9, decode);
  builder.sample_row(first + 2, {});
  builder.sample_row(second, {});
  const Batch batch = builder.build();

  EXPECT_THAT(batch.tokens, ElementsAre(5, 6, 7, 9));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 9));
  EXPECT_THAT(batch.cu_seqlens_q, ElementsAre(0, 3, 4));
  EXPECT_THAT(batch.context_lens, ElementsAre(3, 10));
  EXPECT_THAT(batch.logit_rows, ElementsAre(2, 3));
  EXPECT_EQ(batch.block_tables[0].columns, 2);
  EXPECT_THAT(batch.block_tables[0].pages,
              ElementsAre(prefill.table(0)[0], -1, decode.table(0)[0], decode.table(0)[1]));
}

}  // namespace
}  // namespace octavo
