#include "server/batches/batch_input.h"

#include <gmock/gmock.h>

#include "state/testing/state_folder.h"

namespace octavo::server {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class BatchInputTest : public testing::Test {
 protected:
  BatchInputTest() {
    batches_.create(batch_);
    file_.key = files_.begin(file_);
    for (int64_t number = 0; number < 3; ++number) {
      const std::string text = R"({"custom_id":")" + std::to_string(number) +
                               R"(","method":"POST","url":"/v1/completions","body":{}})" + "\n";
      files_.append(file_.key, number, text);
      file_.bytes += static_cast<int64_t>(text.size());
    }
    files_.finish(file_.key, "batch", file_.bytes);
  }

  state::StateFolder folder_;
  state::Database database_{folder_.path()};
  state::FileTable files_{database_};
  state::BatchTable batches_{database_};
  state::BatchRecord batch_{.id = "b", .owner = "a", .endpoint = "/v1/completions"};
  state::FileRecord file_{.id = "f", .owner = "a", .filename = "f.jsonl", .purpose = "batch"};
};

TEST_F(BatchInputTest, ReadsAllLines) {
  BatchInput input(batch_, file_, {});
  while (input.read_more(database_)) {
  }
  EXPECT_THAT(input.errors(), IsEmpty());
  EXPECT_EQ(input.lines(), 3);
}

TEST_F(BatchInputTest, AFileThatIsDeletedMeanwhileIsAnError) {
  BatchInput input(batch_, file_, {});
  EXPECT_TRUE(input.read_more(database_));
  files_.discard(file_.key);
  EXPECT_FALSE(input.read_more(database_));
  EXPECT_THAT(input.errors(), HasSubstr("the input file was deleted"));
}

}  // namespace
}  // namespace octavo::server
