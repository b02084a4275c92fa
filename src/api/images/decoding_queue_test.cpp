#include "api/images/decoding_queue.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <thread>

#include "api/testing/refusals.h"

namespace octavo::api {
namespace {

TEST(DecodingQueue, TurnsAreInTheOrderOfArrival) {
  DecodingQueue queue;
  std::string order;  // written by the one whose turn it is
  std::optional<DecodingQueue::Place> first(std::in_place, queue);
  first->wait_for_turn({});
  const auto start = [&](char name, size_t size) {
    std::thread thread([&, name] {
      const DecodingQueue::Place place(queue);
      place.wait_for_turn({});
      order += name;
    });
    while (queue.size() < size) std::this_thread::yield();
    return thread;
  };
  std::thread second = start('2', 2);
  std::thread third = start('3', 3);
  // A second turn of the first comes last.
  first.reset();
  {
    const DecodingQueue::Place again(queue);
    again.wait_for_turn({});
    order += '1';
  }
  second.join();
  third.join();
  EXPECT_EQ(order, "231");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(DecodingQueue, AStoppedRequestLeaves) {
  DecodingQueue queue;
  const DecodingQueue::Place first(queue);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(refused_field([&] {
              const DecodingQueue::Place second(queue);
              second.wait_for_turn({.stop = stop.get_token()});
            }),
            "503 ");
  EXPECT_EQ(queue.size(), 1u);
}

}  // namespace
}  // namespace octavo::api
