#include "server/batches/turnstile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <vector>

namespace octavo::server {
namespace {

Awaitable<void> pass_through(Turnstile& turnstile, std::vector<int>& order, int& inside, int name) {
  const Turnstile::Pass pass = co_await turnstile.enter();
  EXPECT_LE(++inside, 2);
  order.push_back(name);
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                  std::chrono::milliseconds(1));
  co_await timer.async_wait(boost::asio::use_awaitable);
  --inside;
}

TEST(Turnstile, LetsANumberPassInOrder) {
  boost::asio::io_context io;
  Turnstile turnstile(2);
  std::vector<int> order;
  int inside = 0;
  for (int i = 0; i < 6; ++i)
    boost::asio::co_spawn(io, pass_through(turnstile, order, inside, i), boost::asio::detached);
  io.run();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace octavo::server
