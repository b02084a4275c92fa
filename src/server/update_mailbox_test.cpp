#include "server/update_mailbox.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <thread>

namespace octavo::server {
namespace {

Update with_tokens(size_t count) {
  Update update;
  update.tokens.assign(count, 1);
  return update;
}

class UpdateMailboxTest : public testing::Test {
 protected:
  int run() {  // how often it was called
    calls_ = 0;
    io_.restart();
    io_.run();
    return calls_;
  }
  std::shared_ptr<UpdateMailbox> mailbox(size_t most_bytes = kMailboxBytes) {
    return std::make_shared<UpdateMailbox>(io_.get_executor(), [this] { ++calls_; }, most_bytes);
  }
  boost::asio::io_context io_;
  int calls_ = 0;
};

TEST_F(UpdateMailboxTest, CallsOncePerTimeItWasEmpty) {
  const auto box = mailbox();
  box->put(0, with_tokens(1));
  box->put(1, with_tokens(1));
  EXPECT_EQ(run(), 1);
  const auto letters = box->take();
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_EQ(letters[1].prompt, 1u);
  box->put(0, with_tokens(1));
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(run(), 0);
}

TEST_F(UpdateMailboxTest, OverflowsIfTheReaderIsTooSlow) {
  const auto box = mailbox();
  const size_t half = kMailboxBytes / sizeof(TokenId) / 2;
  box->put(0, with_tokens(half));
  EXPECT_FALSE(box->overflowed());
  box->put(0, with_tokens(half));
  EXPECT_TRUE(box->overflowed());
  EXPECT_EQ(box->take().size(), 1u);
  EXPECT_TRUE(box->overflowed());  // the lost update is not recovered
}

TEST_F(UpdateMailboxTest, ASingleLetterMayHaveAnySize) {
  const auto box = mailbox();
  box->put(0, with_tokens(kMailboxBytes));
  EXPECT_FALSE(box->overflowed());
  box->take();
  box->put(0, with_tokens(kMailboxBytes));
  EXPECT_FALSE(box->overflowed());
}

// Non-streamed responses are collected without a bound.
TEST_F(UpdateMailboxTest, WithoutABoundNothingIsLost) {
  const auto box = mailbox(kUnboundedMailbox);
  for (int i = 0; i < 100; ++i) box->put(0, with_tokens(kMailboxBytes / sizeof(TokenId) / 10));
  EXPECT_FALSE(box->overflowed());
  EXPECT_EQ(box->take().size(), 100u);
}

TEST_F(UpdateMailboxTest, NoCallbackAfterClose) {
  const auto box = mailbox();
  box->put(0, with_tokens(1));
  box->close();
  EXPECT_EQ(run(), 0);
  box->put(0, with_tokens(1));
  EXPECT_EQ(run(), 0);
  EXPECT_TRUE(box->take().empty());
}

TEST_F(UpdateMailboxTest, LettersFromAnotherThreadAllArrive) {
  const auto box = mailbox();
  size_t got = 0;
  std::thread engine([&] {
    for (int i = 0; i < 1000; ++i) box->put(0, with_tokens(1));
  });
  while (got < 1000) {
    run();
    got += box->take().size();
  }
  engine.join();
  EXPECT_EQ(got, 1000u);
}

}  // namespace
}  // namespace octavo::server
