#include "engine/pipeline/rows_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "distributed/memory_links.h"

namespace octavo {
namespace {

RowBytes bytes_of(std::initializer_list<int> values) {
  RowBytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

class RowsLink : public testing::Test {
 protected:
  std::vector<std::unique_ptr<TensorLinks>> links_ = make_memory_links(2);
};

TEST_F(RowsLink, RowsArriveInOrderAndEachStepOnce) {
  std::atomic<int> arrivals = 0;
  RowsSender sender(*links_[0], 1);
  RowsReceiver receiver(*links_[1], 0, [&] { ++arrivals; });
  EXPECT_FALSE(receiver.has_arrived());
  receiver.expect(2);
  receiver.expect(1);
  sender.send(0, bytes_of({1, 2}));
  sender.send(0, bytes_of({9, 9}));  // zeros of a step that was sent already
  sender.send(1, bytes_of({3}));
  EXPECT_EQ(receiver.take(), bytes_of({1, 2}));
  EXPECT_EQ(receiver.take(), bytes_of({3}));
  sender.restart();
  receiver.expect(1);
  sender.send(0, bytes_of({4}));
  EXPECT_EQ(receiver.take(), bytes_of({4}));
  EXPECT_FALSE(sender.failure().has_value());
  while (arrivals < 3) std::this_thread::yield();
}

TEST_F(RowsLink, AStoppedLinkEndsWaitingAndIsAnError) {
  RowsSender sender(*links_[0], 1);
  RowsReceiver receiver(*links_[1], 0, [] {});
  receiver.expect(1);
  links_[1]->stop();
  EXPECT_THROW(receiver.take(), LinkError);
  EXPECT_TRUE(receiver.has_arrived());
  sender.send(0, bytes_of({1}));
  while (!sender.failure()) std::this_thread::yield();
  sender.send(1, bytes_of({1}));  // discarded
}

TEST_F(RowsLink, AReceiverThatWaitsCanBeDestroyed) {
  RowsReceiver receiver(*links_[1], 0, [] {});
  receiver.expect(1);
}

DecoderPlan plan_of(bool has_layer_input) {
  DecoderPlan plan;
  plan.hidden = 3;
  plan.layers.resize(2);
  if (has_layer_input) plan.per_layer_input = PerLayerInputPlan{.width = 2, .vocab = 1};
  return plan;
}

// Computed rows pass through the primitive, and keep their bits.
TEST_F(RowsLink, RowsKeepTheirBits) {
  for (const bool has_layer_input : {false, true}) {
    const DecoderPlan plan = plan_of(has_layer_input);
    RowsSender sender(*links_[0], 1);
    RowsReceiver receiver(*links_[1], 0, [] {});
    receiver.expect(2 * passed_row_bytes(plan, DType::kFloat32));
    Embedded rows{mx::multiply(mx::arange(0.f, 6.f, 1.f), mx::array(0.1f)), std::nullopt};
    rows.rows = mx::reshape(rows.rows, {2, 3});
    if (has_layer_input) rows.per_layer = mx::reshape(mx::arange(0.f, 8.f, 1.f), {2, 4});
    mx::eval(send_rows(rows, 0, sender));
    const Embedded same = received_rows(receiver.take(), 2, plan, DType::kFloat32);
    EXPECT_EQ(same.rows.shape(), rows.rows.shape());
    EXPECT_EQ(std::memcmp(same.rows.data<float>(), rows.rows.data<float>(), rows.rows.nbytes()), 0);
    ASSERT_EQ(same.per_layer.has_value(), has_layer_input);
    if (!has_layer_input) continue;
    EXPECT_EQ(std::memcmp(same.per_layer->data<float>(), rows.per_layer->data<float>(),
                          rows.per_layer->nbytes()),
              0);
  }
}

}  // namespace
}  // namespace octavo
