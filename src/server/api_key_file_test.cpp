#include "server/api_key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

namespace octavo::server {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<ApiKey> keys_in(const std::string& text) {
  const std::string path = testing::TempDir() + "octavo_api_key_file_test";
  std::ofstream(path) << text;
  return read_api_key_file(path);
}

std::string error_of(const std::string& text) {
  try {
    keys_in(text);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(ApiKeyFile, ALineIsAKeyOrANameAndAKey) {
  const auto keys = keys_in("# people\nsecret1\n\nalice:secret2\r\nteam-b_2.x: se:cret3 \n");
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].key + "|" + keys[0].name, "secret1|");
  EXPECT_EQ(keys[1].key + "|" + keys[1].name, "secret2|alice");
  EXPECT_EQ(keys[2].key + "|" + keys[2].name, "se:cret3|team-b_2.x");
}

TEST(ApiKeyFile, OnlyAPlainPrefixIsAName) {
  const std::string long_name(65, 'a');
  for (const std::string& line :
       {std::string(":key"), std::string("a b:key"), std::string("a/b:key"), long_name + ":key"}) {
    const auto keys = keys_in(line);
    EXPECT_EQ(keys[0].key, line);
    EXPECT_EQ(keys[0].name, "");
  }
  EXPECT_EQ(keys_in(std::string(64, 'a') + ":key")[0].key, "key");
}

TEST(ApiKeyFile, RefusesWhatIsThereTwiceWithoutPrintingKeys) {
  const std::string key = error_of("a:secret\nb:other\nsecret\n");
  EXPECT_THAT(key, HasSubstr("line 3"));
  EXPECT_THAT(key, HasSubstr("of line 1"));
  EXPECT_THAT(key, Not(HasSubstr("secret")));
  const std::string name = error_of("a:secret\n\na:hidden\n");
  EXPECT_THAT(name, HasSubstr("line 3"));
  EXPECT_THAT(name, HasSubstr("the name a is used in line 1"));
  EXPECT_THAT(name, Not(HasSubstr("hidden")));
}

TEST(ApiKeyFile, RefusesMissingKeysAndFiles) {
  EXPECT_THAT(error_of("one\nalice:  \n"), HasSubstr("no key after \"alice:\""));
  EXPECT_THAT(error_of("# only a comment\n"), HasSubstr("no key in"));
  EXPECT_THROW(read_api_key_file("/nowhere/keys"), SetupError);
}

}  // namespace
}  // namespace octavo::server
