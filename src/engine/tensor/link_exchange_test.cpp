#include "engine/tensor/link_exchange.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "distributed/memory_links.h"
#include "kernels/runtime/queueing.h"

namespace octavo {
namespace {

using testing::Each;
using testing::ElementsAre;

// Runs `work` as each of the ranks, each on a thread of its own, as MLX requires. MLX counts the
// operations of all threads, and would let one rank wait for its own although another must run first.
void as_ranks(int ranks, const std::function<void(LinkExchange&, TensorLinks&)>& work) {
  const QueueAtOnce at_once(true);
  auto links = make_memory_links(ranks);
  std::vector<std::thread> threads;
  for (auto& own : links) {
    threads.emplace_back([&] {
      LinkExchange exchange(*own);
      work(exchange, *own);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> values_of(mx::array array) {
  array.eval();
  return {array.data<float>(), array.data<float>() + array.size()};
}

// [rows, columns] with 100 * row + column.
mx::array whole_rows(int rows, int columns) {
  std::vector<float> values;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      values.push_back(static_cast<float>(100 * row + column));
  return mx::array(values.begin(), {rows, columns});
}

TEST(LinkExchange, GathersTheColumnsOfAllRanks) {
  for (const int ranks : {2, 3, 4}) {
    for (const int columns : {16, 40, 64, 96}) {
      as_ranks(ranks, [&](LinkExchange& exchange, TensorLinks&) {
        const mx::array whole = whole_rows(3, columns);
        const mx::array got =
            exchange.gather(own_columns(whole, exchange.share()), std::vector{columns}, kStripRows);
        EXPECT_EQ(values_of(got), values_of(whole)) << ranks << " ranks, " << columns << " columns";
      });
    }
  }
}

TEST(LinkExchange, GathersSeveralProductsAtOnce) {
  as_ranks(2, [](LinkExchange& exchange, TensorLinks&) {
    const mx::array first = whole_rows(2, 32);
    const mx::array second = mx::negative(whole_rows(2, 48));
    const OutputShare share = exchange.share();
    const mx::array parts =
        mx::concatenate({own_columns(first, share), own_columns(second, share)}, 1);
    const mx::array got = exchange.gather(parts, std::vector{32, 48}, kStripRows);
    EXPECT_EQ(values_of(got), values_of(mx::contiguous(mx::concatenate({first, second}, 1))));
  });
}

// More than a socket takes at once.
TEST(LinkExchange, GathersLongRows) {
  as_ranks(3, [](LinkExchange& exchange, TensorLinks&) {
    const mx::array whole = whole_rows(500, 1040);
    const mx::array got =
        exchange.gather(own_columns(whole, exchange.share()), std::vector{1040}, kStripRows);
    EXPECT_TRUE(mx::array_equal(got, whole).item<bool>());
  });
}

TEST(LinkExchange, OnlyRank0HasTheLogits) {
  as_ranks(3, [](LinkExchange& exchange, TensorLinks&) {
    const mx::array whole = whole_rows(2, 50);
    mx::array got = exchange.gather_at_first(own_columns(whole, exchange.share()), 50);
    got.eval();
    if (exchange.share().rank == 0) {
      EXPECT_EQ(values_of(got), values_of(whole));
    }
  });
}

TEST(LinkExchange, AllRanksHaveRank0sTokens) {
  as_ranks(3, [](LinkExchange& exchange, TensorLinks&) {
    const int own = exchange.share().rank == 0 ? 7 : 0;
    mx::array tokens = exchange.from_first(mx::full({3}, own, mx::int32), 3);
    tokens.eval();
    EXPECT_THAT(std::vector<int>(tokens.data<int>(), tokens.data<int>() + 3), ElementsAre(7, 7, 7));
  });
}

// Evaluated in another order than they were made, and not connected to each other.
TEST(LinkExchange, CallsRunInTheOrderInWhichTheyWereMade) {
  as_ranks(2, [](LinkExchange& exchange, TensorLinks&) {
    const OutputShare share = exchange.share();
    std::vector<mx::array> got;
    for (int i = 0; i < 20; ++i) {
      const mx::array whole = mx::multiply(whole_rows(1 + i % 3, 32), mx::array(float(i)));
      got.push_back(exchange.gather(own_columns(whole, share), std::vector{32}, kStripRows));
    }
    if (share.rank == 1) std::reverse(got.begin(), got.end());
    mx::async_eval(got);
    if (share.rank == 1) std::reverse(got.begin(), got.end());
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(values_of(got[static_cast<size_t>(i)])[1], static_cast<float>(i));
  });
}

TEST(LinkExchange, AfterAFailureResultsAreZerosAndTheStepFails) {
  as_ranks(2, [](LinkExchange& exchange, TensorLinks& links) {
    const mx::array whole = whole_rows(1, 32);
    if (exchange.share().rank == 1) return links.stop();
    const mx::array own = own_columns(whole, exchange.share());
    const mx::array got = exchange.gather(own, std::vector{32}, kStripRows);
    EXPECT_THAT(
        values_of(exchange.gather(own_columns(got, exchange.share()), std::vector{32}, kStripRows)),
        Each(0));
    EXPECT_THROW(exchange.check(), LinkError);
  });
}

}  // namespace
}  // namespace octavo
