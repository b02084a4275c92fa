#include "distributed/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "distributed/cluster_messages.h"
#include "distributed/socket_address.h"
#include "distributed/testing/random_messages.h"
#include "distributed/wire.h"

namespace octavo {
namespace {

TEST(FrameReader, PutsFramesTogetherFromAnyPieces) {
  RandomMessages random(1);
  std::vector<std::byte> stream;
  std::vector<std::vector<std::byte>> payloads;
  for (int i = 0; i < 50; ++i) {
    payloads.push_back(i % 5 == 0 ? std::vector<std::byte>() : encode(random.step()));
    const auto bytes = frame_bytes(FrameType::kStep, payloads.back());
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  for (const size_t piece : {1u, 7u, 4096u, 1u << 30}) {
    FrameReader reader;
    std::vector<std::vector<std::byte>> got;
    for (size_t at = 0; at < stream.size(); at += piece) {
      std::span<const std::byte> left =
          std::span(stream).subspan(at, std::min(piece, stream.size() - at));
      while (!left.empty())
        if (auto frame = reader.take(left)) got.push_back(std::move(frame->payload));
    }
    EXPECT_EQ(got, payloads) << piece;
  }
}

TEST(FrameReader, AnAnnouncedLengthIsNotAllocated) {
  std::vector<std::byte> bytes(kFrameHeaderBytes + 3);
  std::ranges::copy(frame_header(FrameType::kCopyIn, 1u << 29), bytes.begin());
  FrameReader reader;
  std::span<const std::byte> left = bytes;
  EXPECT_FALSE(reader.take(left));
  EXPECT_LE(reader.reserved_bytes(), 64u << 10);
}

TEST(FrameHeader, OtherProtocolsVersionsTypesAndLengthsAreRefused) {
  const auto refusal_of = [](size_t at, uint8_t value) -> std::string {
    FrameHeader header = frame_header(FrameType::kDrop, 0);
    header[at] = std::byte{value};
    try {
      parse_frame_header(header);
    } catch (const WireError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal_of(0, 'X'), testing::HasSubstr("does not speak Octavo's protocol"));
  EXPECT_THAT(refusal_of(4, kProtocolVersion + 1),
              testing::AllOf(testing::HasSubstr("version 2"), testing::HasSubstr("same version")));
  EXPECT_THAT(refusal_of(6, 0), testing::HasSubstr("unknown message type 0"));
  EXPECT_THAT(refusal_of(6, 99), testing::HasSubstr("unknown message type 99"));
  EXPECT_THAT(refusal_of(11, 1), testing::HasSubstr("16777216 bytes"));
  EXPECT_THROW(frame_header(FrameType::kDrop, 1 << 20), WireError);
}

TEST(WireReader, CountsAreCheckedBeforeAnythingIsAllocated) {
  WireWriter writer;
  writer.put<uint32_t>(0xFFFFFFFF);
  const auto bytes = writer.take();
  EXPECT_THROW(WireReader(bytes, "test").get_list<uint64_t>(), WireError);
  EXPECT_THROW(WireReader(bytes, "test").get_text(100), WireError);
  EXPECT_THROW(WireReader(bytes, "test").get_int_list(0, 1), WireError);
  WireWriter flag;
  flag.put<uint8_t>(2);
  const auto two = flag.take();
  EXPECT_THROW(WireReader(two, "test").get_flag(), WireError);
}

TEST(ClusterMessages, ComeBack) {
  RandomMessages random(2);
  for (int i = 0; i < 50; ++i) {
    const WorkerHello hello = random.hello();
    const WorkerHello same = decode_hello(encode(hello));
    EXPECT_EQ(same.rank, hello.rank);
    EXPECT_EQ(same.version, hello.version);
    EXPECT_EQ(same.arithmetic, hello.arithmetic);
    EXPECT_EQ(same.isa, hello.isa);
    EXPECT_EQ(same.memory_bytes, hello.memory_bytes);
    EXPECT_EQ(same.model_digest, hello.model_digest);
    EXPECT_EQ(same.address, hello.address);
    const Welcome welcome = random.welcome();
    const Welcome also = decode_welcome(encode(welcome));
    EXPECT_EQ(also.rank, welcome.rank);
    EXPECT_EQ(also.size, welcome.size);
    EXPECT_EQ(also.session, welcome.session);
    EXPECT_EQ(also.addresses, welcome.addresses);
  }
  EXPECT_EQ(decode_text(encode_text("text")), "text");
  EXPECT_EQ(decode_taken(encode_taken(5)), 5u);
  EXPECT_EQ(decode_heartbeat(encode_heartbeat(std::chrono::hours(10'000'000))).count(),
            1'000'000'000);
  EXPECT_EQ(decode_page_request(encode(PageRequest{.page = 3, .bytes = 9})).bytes, 9u);
  EXPECT_THROW(decode_page_request(encode(PageRequest{.page = -1})), WireError);
}

TEST(SocketAddress, PrivateNetworksAreRecognised) {
  const auto is_private = [](const char* host) {
    return SocketAddress::resolve(host, 1, false).front().is_private();
  };
  for (const char* host :
       {"127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.1.1",
        "100.64.0.1", "100.127.0.1", "::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1"})
    EXPECT_TRUE(is_private(host)) << host;
  for (const char* host : {"8.8.8.8", "172.32.0.1", "172.15.0.1", "192.169.0.1", "100.128.0.1",
                           "11.0.0.1", "0.0.0.0", "::", "2001:db8::1", "::ffff:8.8.8.8"})
    EXPECT_FALSE(is_private(host)) << host;
}

TEST(SocketAddress, AddressesAreJoinedAndSplit) {
  EXPECT_EQ(join_address("fd00::1", 9), "[fd00::1]:9");
  for (const char* host : {"10.0.0.1", "fd00::1", "host.local"})
    EXPECT_EQ(split_address(join_address(host, 9000)),
              std::pair(std::string(host), uint16_t{9000}));
  for (const char* address : {"", "host", ":1", "host:", "host:x", "host:70000", "fd00::1:5",
                              "[fd00::1", "[]:1", "[fd00::1:1"})
    EXPECT_THROW(split_address(address), WireError) << address;
}

}  // namespace
}  // namespace octavo
