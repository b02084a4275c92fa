#include "distributed/handshake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>

#include "base/constant_time.h"
#include "distributed/frame.h"
#include "distributed/wire.h"

namespace octavo {
namespace {

constexpr size_t kMostSession = 64;

Sha256Digest fresh_cluster_nonce() {
  std::random_device random;
  Sha256Digest nonce;
  for (size_t i = 0; i < nonce.size(); i += 4) {
    const uint32_t word = random();
    std::memcpy(nonce.data() + i, &word, 4);
  }
  return nonce;
}

std::span<const std::byte> bytes_of(const Sha256Digest& digest) {
  return std::as_bytes(std::span(digest));
}

Sha256Digest read_digest(WireReader& reader) {
  Sha256Digest digest;
  std::memcpy(digest.data(), reader.get_bytes(digest.size()).data(), digest.size());
  return digest;
}

Sha256Digest digest_in(const Frame& frame, const char* what) {
  WireReader reader(frame.payload, what);
  const Sha256Digest digest = read_digest(reader);
  reader.end();
  return digest;
}

std::string proven_text(std::string_view side, std::span<const std::byte> opening,
                        const Sha256Digest& challenge) {
  std::string text = fmt::format("octavo {} version {}\n", side, kProtocolVersion);
  text.append(reinterpret_cast<const char*>(opening.data()), opening.size());
  text.append(reinterpret_cast<const char*>(challenge.data()), challenge.size());
  return text;
}

}  // namespace

std::vector<std::byte> encode_opening(const Opening& opening, const Sha256Digest& nonce) {
  WireWriter writer;
  writer.put(static_cast<uint8_t>(opening.kind));
  writer.put(static_cast<int32_t>(opening.rank));
  writer.put_text(opening.session);
  writer.put_bytes(bytes_of(nonce));
  return writer.take();
}

Opening decode_opening(std::span<const std::byte> payload) {
  WireReader reader(payload, "opening");
  const auto kind = reader.get<uint8_t>();
  if (kind != static_cast<uint8_t>(ConnectionKind::kControl) &&
      kind != static_cast<uint8_t>(ConnectionKind::kLink))
    reader.refuse("is of an unknown kind");
  Opening opening{.kind = static_cast<ConnectionKind>(kind)};
  opening.rank = reader.get_int(0, 1 << 16);
  opening.session = reader.get_text(kMostSession);
  read_digest(reader);
  reader.end();
  return opening;
}

void open_as_client(TcpConnection& connection, const ClusterSecret& secret, const Opening& opening,
                    SocketClock::time_point deadline) {
  const std::vector<std::byte> payload = encode_opening(opening, fresh_cluster_nonce());
  send_frame(connection, FrameType::kOpening, payload, deadline);
  const Sha256Digest challenge =
      digest_in(receive_frame(connection, FrameType::kChallenge, deadline), "challenge");
  send_frame(connection, FrameType::kClientProof,
             bytes_of(secret.proof(proven_text("client", payload, challenge))), deadline);
  const Sha256Digest proof =
      digest_in(receive_frame(connection, FrameType::kServerProof, deadline), "proof");
  if (!secret.proves(proof, proven_text("server", payload, challenge)))
    throw ClusterError("the peer does not know the cluster's secret");
}

Opening accept_as_server(TcpConnection& connection, const ClusterSecret& secret,
                         const Opening& expected, SocketClock::time_point deadline) {
  try {
    const Frame frame = receive_frame(connection, FrameType::kOpening, deadline);
    Opening opening = decode_opening(frame.payload);
    const Sha256Digest challenge = fresh_cluster_nonce();
    send_frame(connection, FrameType::kChallenge, bytes_of(challenge), deadline);
    const Sha256Digest proof =
        digest_in(receive_frame(connection, FrameType::kClientProof, deadline), "proof");
    if (!secret.proves(proof, proven_text("client", frame.payload, challenge)))
      throw WireError("the secret is not the one of this cluster");
    if (opening.kind != expected.kind) throw WireError("this port is for other connections");
    if (!equal_in_constant_time(opening.session, expected.session))
      throw WireError("the connection belongs to another cluster");
    send_frame(connection, FrameType::kServerProof,
               bytes_of(secret.proof(proven_text("server", frame.payload, challenge))), deadline);
    return opening;
  } catch (const WireError& error) {
    send_refusal(connection, error.what());
    throw;
  }
}

std::string fresh_session() {
  const Sha256Digest random = fresh_cluster_nonce();
  return fmt::format("{:02x}", fmt::join(std::span(random).first(16), ""));
}

}  // namespace octavo
