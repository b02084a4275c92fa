#include "prefix_peer/peer_secret.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace octavo {
namespace {

using Side = PeerSecret::Side;

TEST(PeerSecret, ProvesOnlyWhatWasProven) {
  const PeerSecret secret("a secret of enough characters");
  const std::string nonce = fresh_nonce();
  const std::string proof = secret.proof(Side::kRequest, "/path", nonce, "body");
  EXPECT_TRUE(secret.proves(proof, Side::kRequest, "/path", nonce, "body"));
  EXPECT_FALSE(secret.proves(proof, Side::kResponse, "/path", nonce, "body"));
  EXPECT_FALSE(secret.proves(proof, Side::kRequest, "/other", nonce, "body"));
  EXPECT_FALSE(secret.proves(proof, Side::kRequest, "/path", fresh_nonce(), "body"));
  EXPECT_FALSE(secret.proves(proof, Side::kRequest, "/path", nonce, "bodies"));
  EXPECT_FALSE(secret.proves("", Side::kRequest, "/path", nonce, "body"));
  const PeerSecret other("another secret of enough characters");
  EXPECT_FALSE(other.proves(proof, Side::kRequest, "/path", nonce, "body"));
}

TEST(PeerSecret, NoncesAreDifferentAndHex) {
  EXPECT_TRUE(is_nonce(fresh_nonce()));
  EXPECT_NE(fresh_nonce(), fresh_nonce());
  EXPECT_FALSE(is_nonce(""));
  EXPECT_FALSE(is_nonce(std::string(32, 'G')));
}

TEST(PeerSecret, FilesWithoutEnoughCharactersAreRefused) {
  std::string name = (std::filesystem::temp_directory_path() / "octavo-secret-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  ASSERT_GE(file, 0);
  ::close(file);
  std::ofstream(name) << "fifteen letters\n";
  EXPECT_THROW(PeerSecret::from_file(name), SetupError);
  std::ofstream(name) << "sixteen letters!\n";
  const std::string nonce = fresh_nonce();
  EXPECT_TRUE(PeerSecret::from_file(name).proves(
      PeerSecret("sixteen letters!").proof(Side::kRequest, "/", nonce, ""), Side::kRequest, "/",
      nonce, ""));
  std::ofstream(name) << std::string(5000, 'x');
  EXPECT_THROW(PeerSecret::from_file(name), SetupError);
  std::filesystem::remove(name);
  EXPECT_THROW(PeerSecret::from_file(name), SetupError);
}

}  // namespace
}  // namespace octavo
