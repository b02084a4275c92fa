#include "kv_events/event_publisher.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo::kv_events {
namespace {

using Json = nlohmann::json;

TEST(ReplayBuffer, KeepsTheNewestBatchesAndBytes) {
  const auto payload = std::make_shared<const std::vector<uint8_t>>(10);
  ReplayBuffer buffer(/*most_batches=*/3, /*most_bytes=*/25);
  for (uint64_t sequence : {0, 1, 2}) buffer.add(sequence, payload);
  ASSERT_EQ(buffer.entries().size(), 2u);
  EXPECT_EQ(buffer.entries().front().sequence, 1u);
  ReplayBuffer few(/*most_batches=*/1, /*most_bytes=*/100);
  for (uint64_t sequence : {4, 5}) few.add(sequence, payload);
  ASSERT_EQ(few.entries().size(), 1u);
  EXPECT_EQ(few.entries().front().sequence, 5u);
}

TEST(ChangeQueue, DropsTheOldestAndCountsThem) {
  int woken = 0;
  ChangeQueue queue(/*most=*/2, [&] { ++woken; });
  for (uint64_t hash : {1, 2, 3, 4}) queue.removed(0, hash, CacheMedium::kMemory);
  const ChangeQueue::Batch batch = queue.take();
  EXPECT_EQ(batch.dropped, 2u);
  ASSERT_EQ(batch.changes.size(), 2u);
  EXPECT_EQ(std::get<Removed>(batch.changes.front()).hash, 3u);
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(queue.take().changes.empty());
}

TEST(EventSockets, BindsHereAndConnectsElsewhere) {
  for (const char* here : {"tcp://*:5557", "tcp://127.0.0.1:5557", "tcp://[::]:5557", "ipc:///x"})
    EXPECT_TRUE(listens_at(here)) << here;
  EXPECT_FALSE(listens_at("tcp://10.0.0.9:5557"));
  EXPECT_TRUE(is_local("tcp://127.0.0.1:5557"));
  EXPECT_TRUE(is_local("ipc:///x"));
  EXPECT_FALSE(is_local("tcp://0.0.0.0:5557"));
}

class EventPublisherTest : public testing::Test {
 protected:
  static Config config() {
    Config config{.enable_kv_cache_events = true,
                  .endpoint = "tcp://127.0.0.1:*",
                  .replay_endpoint = "tcp://127.0.0.1:*",
                  .buffer_steps = 2,
                  .topic = "kv"};
    return config;
  }

  // The frames of the next message, or none if none comes in time.
  static std::vector<std::string> receive(zmq::socket_t& socket, int milliseconds = 5000) {
    std::vector<std::string> frames;
    socket.set(zmq::sockopt::rcvtimeo, milliseconds);
    zmq::message_t part;
    do {
      if (!socket.recv(part)) return {};
      frames.push_back(part.to_string());
    } while (part.more());
    return frames;
  }

  // Sequence numbers of a replay from `start` on, the end (-1) included.
  std::vector<int64_t> replay(const EventPublisher& publisher, std::string_view start) {
    zmq::socket_t dealer(context_, zmq::socket_type::dealer);
    dealer.connect(publisher.config().replay_endpoint);
    dealer.send(zmq::message_t(), zmq::send_flags::sndmore);
    dealer.send(zmq::buffer(start));
    std::vector<int64_t> sequences;
    while (sequences.empty() || sequences.back() >= 0) {
      const auto frames = receive(dealer);
      if (frames.size() != 4 || frames[2].size() != 8) break;
      sequences.push_back(static_cast<int8_t>(frames[2].back()));
    }
    return sequences;
  }

  zmq::context_t context_;
};

TEST_F(EventPublisherTest, SendsTopicSequenceAndEvents) {
  EventPublisher publisher(config());
  zmq::socket_t subscriber(context_, zmq::socket_type::sub);
  subscriber.set(zmq::sockopt::subscribe, "kv");
  subscriber.connect(publisher.config().endpoint);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  publisher.observer().removed(0, 7, CacheMedium::kMemory);
  const auto frames = receive(subscriber);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0], "kv");
  EXPECT_EQ(frames[1], std::string(8, '\0'));
  EXPECT_EQ(Json::from_msgpack(frames[2])[1][0]["block_hashes"][0], 7);
}

TEST_F(EventPublisherTest, ReplaysWhatItKept) {
  EventPublisher publisher(config());
  for (uint64_t hash = 0; hash < 4; ++hash) {
    publisher.observer().removed(0, hash, CacheMedium::kMemory);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(replay(publisher, std::string_view("\0", 1)), (std::vector<int64_t>{2, 3, -1}));
  EXPECT_EQ(replay(publisher, std::string_view("\3", 1)), (std::vector<int64_t>{3, -1}));
  EXPECT_EQ(replay(publisher, std::string_view("\7", 1)), (std::vector<int64_t>{-1}));
}

TEST_F(EventPublisherTest, ASlowSubscriberIsNotWaitedFor) {
  Config small = config();
  small.hwm = 2;
  EventSockets sockets(small);
  zmq::socket_t slow(context_, zmq::socket_type::sub);
  slow.set(zmq::sockopt::rcvhwm, 2);
  slow.set(zmq::sockopt::subscribe, "");
  slow.connect(sockets.endpoint());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto payload = std::make_shared<const std::vector<uint8_t>>(1 << 20);
  const auto start = std::chrono::steady_clock::now();
  constexpr uint64_t kBatches = 200;
  for (uint64_t sequence = 0; sequence < kBatches; ++sequence) sockets.publish(sequence, payload);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  size_t came = 0;
  for (auto frames = receive(slow, 500); !frames.empty(); frames = receive(slow, 500)) ++came;
  EXPECT_GT(came, 0u);
  EXPECT_LT(came, kBatches);
}

TEST_F(EventPublisherTest, AnAddressInUseIsASetupError) {
  EventPublisher publisher(config());
  Config again = config();
  again.endpoint = publisher.config().endpoint;
  EXPECT_THROW(EventPublisher{again}, SetupError);
}

}  // namespace
}  // namespace octavo::kv_events
