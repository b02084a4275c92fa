// What a hub's listing, or a link in the cache, can make octavo pull write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "hub/cache_folder.h"
#include "hub/hub_cache.h"
#include "hub/hub_client.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Json = nlohmann::json;

const std::string kCommit(40, 'c');
const std::string kSha1(40, 'a');
const std::string kSha256(64, 'b');

std::string listing_of(const Json& siblings) {
  return Json{{"sha", kCommit}, {"siblings", siblings}}.dump();
}

std::string listing_error(const std::string& text) {
  try {
    parse_listing(text);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

TEST(HubListing, NamesThatLeaveTheFolderAreSkipped) {
  Json siblings = Json::array();
  const std::vector<std::string> bad = {"",
                                        ".",
                                        "..",
                                        "/etc/passwd",
                                        "../x",
                                        "a/../../x",
                                        "a/./x",
                                        "a/",
                                        "a\\..\\x",
                                        std::string("a\0b", 3),
                                        "a\nb",
                                        "a\x1b[2J",
                                        "a\u009b2J",
                                        "a/..",
                                        "./config",
                                        std::string(300, 'n'),
                                        std::string(2000, '/')};
  for (const std::string& name : bad)
    siblings.push_back({{"rfilename", name}, {"size", 1}, {"blobId", kSha1}});
  for (const char* name : {"config.json", "1_Pooling/config.json", ".gitattributes", "..x"})
    siblings.push_back({{"rfilename", name}, {"size", 1}, {"blobId", kSha1}});
  std::vector<std::string> kept;
  for (const ModelFile& file : parse_listing(listing_of(siblings)).files) kept.push_back(file.path);
  EXPECT_THAT(
      kept, testing::ElementsAre("config.json", "1_Pooling/config.json", ".gitattributes", "..x"));
}

TEST(HubListing, HasTheArchitectureOfGgufFiles) {
  const auto architecture_of = [](const Json& gguf) {
    const Json listing = {{"sha", kCommit}, {"siblings", Json::array()}, {"gguf", gguf}};
    return parse_listing(listing.dump()).gguf_architecture;
  };
  EXPECT_EQ(architecture_of({{"architecture", "gemma4"}, {"total", 5}}), "gemma4");
  EXPECT_EQ(architecture_of(Json::object()), "");
  EXPECT_EQ(architecture_of(nullptr), "");
  EXPECT_THAT(listing_error(Json{
                  {"sha", kCommit}, {"siblings", Json::array()}, {"gguf", {{"architecture", 1}}}}
                                .dump()),
              HasSubstr("cannot parse the hub's response"));
}

TEST(HubListing, AHashThatIsNotHexIsRefused) {
  for (const std::string& hash :
       {std::string("../../../../secret.txt"), std::string("x"), kSha1.substr(1), kSha1 + "a",
        std::string(39, 'a') + "/", std::string(64, 'g'), std::string(39, 'a') + '\0'}) {
    const Json small = {{"rfilename", "config.json"}, {"size", 1}, {"blobId", hash}};
    const Json large = {{"rfilename", "model.safetensors"},
                        {"size", 1},
                        {"blobId", kSha1},
                        {"lfs", {{"sha256", hash}, {"size", 1}}}};
    for (const Json& file : {small, large})
      EXPECT_THAT(listing_error(listing_of(Json::array({file}))), HasSubstr("is not a SHA-256"))
          << hash;
  }
  const Json good = {{"rfilename", "model.safetensors"},
                     {"size", 1},
                     {"blobId", kSha1},
                     {"lfs", {{"sha256", kSha256}, {"size", 2}}}};
  EXPECT_EQ(parse_listing(listing_of(Json::array({good}))).files.at(0).hash, kSha256);
}

TEST(HubListing, ImpossibleSizesAndCommitsAreRefused) {
  const auto sized = [](const Json& size) {
    return listing_of(
        Json::array({Json{{"rfilename", "config.json"}, {"size", size}, {"blobId", kSha1}}}));
  };
  for (const Json& size : {Json(-1), Json(UINT64_MAX), Json(1e18)})
    EXPECT_THAT(listing_error(sized(size)), HasSubstr("the hub's size of config.json")) << size;
  EXPECT_THAT(listing_error(sized("1")), HasSubstr("cannot parse"));
  const Json half = {{"rfilename", "a"}, {"size", (uint64_t{1} << 49) + 1}, {"blobId", kSha1}};
  EXPECT_THAT(listing_error(listing_of(Json::array({half, half}))), HasSubstr("the hub's size"));
  for (const char* commit : {"", "main", "../../../../../../../../../../../../../etc/"})
    EXPECT_THAT(listing_error(Json{{"sha", commit}, {"siblings", Json::array()}}.dump()),
                HasSubstr("has no commit"));
}

// A cache in a folder of its own, next to a folder that must stay empty.
class PullPaths : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "octavo_pull_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    fs::create_directory(outside());
    fs::create_directory(cache());
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path outside() const { return root_ / "outside"; }
  fs::path cache() const { return root_ / "hub"; }
  fs::path repo() const { return cache() / "models--org--tiny"; }

  void pull() const {
    const HubCache hub(cache());
    hub.make_folders("org/tiny");
    hub.publish({.repo = "org/tiny", .variant = "", .revision = ""}, kCommit,
                {.files = {{.path = "1_Pooling/config.json", .size = 1, .hash = kSha1},
                           {.path = "model.safetensors", .size = 1, .hash = kSha256}}});
  }

  fs::path root_;
};

TEST_F(PullPaths, ASnapshotHasRelativeLinksToBlobs) {
  pull();
  pull();  // the second time finds them
  const fs::path snapshot = repo() / "snapshots" / kCommit;
  EXPECT_EQ(fs::read_symlink(snapshot / "model.safetensors").string(), "../../blobs/" + kSha256);
  EXPECT_EQ(fs::read_symlink(snapshot / "1_Pooling" / "config.json").string(),
            "../../../blobs/" + kSha1);
  EXPECT_EQ(first_word_of(repo() / "refs" / "main"), kCommit);
  EXPECT_TRUE(fs::is_directory(cache() / ".locks" / "models--org--tiny"));
}

TEST_F(PullPaths, TheRecordOfADownloadKilledAfterItsRenameIsRemoved) {
  const fs::path record = repo() / "blobs" / (kSha256 + ".octavo.progress");
  fs::create_directories(record.parent_path());
  std::ofstream(record) << "chunks";
  pull();
  EXPECT_FALSE(fs::exists(record));
}

TEST_F(PullPaths, AnOlderLinkIsReplacedAndItsTargetKept) {
  std::ofstream(outside() / "precious") << "bytes";
  const fs::path snapshot = repo() / "snapshots" / kCommit;
  fs::create_directories(snapshot);
  fs::create_symlink(outside() / "precious", snapshot / "model.safetensors");
  fs::create_directories(repo() / "refs");
  fs::create_symlink(outside() / "precious", repo() / "refs" / "main");
  pull();
  EXPECT_EQ(fs::read_symlink(snapshot / "model.safetensors").string(), "../../blobs/" + kSha256);
  EXPECT_FALSE(fs::is_symlink(repo() / "refs" / "main"));
  EXPECT_EQ(first_word_of(outside() / "precious"), "bytes");
}

TEST_F(PullPaths, EveryFolderThatIsALinkIsRefused) {
  const fs::path snapshot = repo() / "snapshots" / kCommit;
  for (const fs::path& folder :
       {snapshot / "1_Pooling", snapshot, repo() / "snapshots", repo() / "blobs", repo() / "refs",
        cache() / ".locks" / "models--org--tiny", cache() / ".locks", repo()}) {
    fs::create_directories(folder.parent_path());
    fs::create_directory_symlink(outside(), folder);
    try {
      pull();
      ADD_FAILURE() << folder << ": followed";
    } catch (const SetupError& error) {
      EXPECT_THAT(error.what(), HasSubstr(folder.string() + " is a symbolic link"));
      EXPECT_THAT(error.what(), HasSubstr("HF_HUB_CACHE"));
    }
    EXPECT_TRUE(fs::is_empty(outside())) << folder;
    fs::remove_all(cache());
    fs::create_directory(cache());
  }
}

TEST_F(PullPaths, TheCacheItselfMayBeALink) {
  fs::remove(cache());
  fs::create_directory(root_ / "disk");
  fs::create_directory_symlink(root_ / "disk", cache());
  pull();
  EXPECT_TRUE(fs::is_symlink(repo() / "snapshots" / kCommit / "model.safetensors"));
}

TEST_F(PullPaths, ARefThatLeavesTheSnapshotsFindsNothing) {
  pull();
  fs::create_directories(repo() / "blobs");
  std::ofstream(repo() / "refs" / "main") << "../../../outside";
  std::ofstream(outside() / "config.json") << "{}";
  std::ofstream(outside() / "model.safetensors") << "x";
  EXPECT_FALSE(HubCache(cache()).find({.repo = "org/tiny", .variant = "", .revision = ""}));
}

TEST_F(PullPaths, ATreeIsRemovedWithoutFollowingItsLinks) {
  std::ofstream(outside() / "precious") << "bytes";
  fs::create_directories(cache() / "a" / "b");
  fs::create_directory_symlink(outside(), cache() / "a" / "b" / "link");
  std::ofstream(cache() / "a" / "odd\nname") << "x";
  CacheFolder::make_cache(cache()).remove_tree("a");
  EXPECT_FALSE(fs::exists(cache() / "a"));
  EXPECT_TRUE(fs::exists(outside() / "precious"));
}

TEST_F(PullPaths, OnlyWordsOfRegularFilesAreRead) {
  fs::create_directories(cache() / "refs");
  std::ofstream(cache() / "refs" / "main") << "  word more";
  std::ofstream(outside() / "secret") << "secret";
  fs::create_symlink(outside() / "secret", cache() / "refs" / "link");
  const auto refs = CacheFolder::make_cache(cache()).find("refs");
  ASSERT_TRUE(refs);
  EXPECT_EQ(refs->first_word_of("main"), "word");
  for (const char* name : {"link", "missing"}) EXPECT_EQ(refs->first_word_of(name), "");
  EXPECT_THROW(refs->first_word_of(".."), SetupError);
  EXPECT_THROW(refs->find("../../outside"), SetupError);
}

}  // namespace
}  // namespace octavo
