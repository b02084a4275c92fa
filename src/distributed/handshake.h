// handshake.h - both ends of a new connection prove that they know the secret. No MLX.
//
//   client                                server
//   kOpening: what it wants, nonce   ->
//                                    <-   kChallenge: nonce
//   kClientProof                     ->
//                                    <-   kServerProof
//
// A proof is the HMAC-SHA256 of the side's name, the opening and the challenge. The client proves
// first, so that a stranger who connects to the server learns nothing that depends on the secret.
// Nonces are new for every connection, so no proof is accepted twice. Later messages are neither
// encrypted nor authenticated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "distributed/cluster_secret.h"
#include "distributed/tcp_connection.h"

namespace octavo {

enum class ConnectionKind : uint8_t { kControl = 1, kLink = 2 };

// What the client wants.
struct Opening {
  ConnectionKind kind = ConnectionKind::kControl;
  int rank = 0;              // the client's; of a control connection: not used
  std::string session = {};  // of a link: the cluster's
};

// Throw ClusterError: the secrets differ, the server refuses, or the deadline passes.
void open_as_client(TcpConnection& connection, const ClusterSecret& secret, const Opening& opening,
                    SocketClock::time_point deadline);
// An opening of another kind or session than `expected` is refused.
Opening accept_as_server(TcpConnection& connection, const ClusterSecret& secret,
                         const Opening& expected, SocketClock::time_point deadline);

// Hexadecimal digits of 16 random bytes.
std::string fresh_session();

// For tests and fuzzing.
std::vector<std::byte> encode_opening(const Opening& opening, const Sha256Digest& nonce);
Opening decode_opening(std::span<const std::byte> payload);

}  // namespace octavo
