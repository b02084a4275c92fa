// Files, batches and responses in the database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "state/batch_table.h"
#include "state/response_model_table.h"
#include "state/response_table.h"
#include "state/testing/state_folder.h"

namespace octavo::state {
namespace {

using testing::ElementsAre;

class TablesTest : public testing::Test {
 protected:
  int64_t add_file(const std::string& id, const std::string& owner, const std::string& text) {
    const int64_t key = files_.begin({.id = id, .owner = owner});
    files_.append(key, 0, text);
    files_.finish(key, "batch", static_cast<int64_t>(text.size()));
    return key;
  }
  BatchRecord add_batch(const std::string& id, int lines) {
    BatchRecord batch{.id = id, .owner = "a", .created_at = 100, .expires_at = 200};
    batches_.create(batch);
    for (int i = 1; i <= lines; ++i)
      EXPECT_TRUE(batches_.add_line(batch.key, {i, "line " + std::to_string(i), "{}"}));
    batches_.begin(batch.key, lines, 101);
    return batch;
  }
  std::string content(const std::string& id) const {
    const auto file = files_.find("a", id);
    return file ? files_.chunk(file->key, 0).value_or("") : "no file";
  }
  void end(const BatchRecord& batch, const char* status) {
    batches_.end(batch.key, status,
                 {.output = {.id = "out", .owner = "a"},
                  .errors = {.id = "err", .owner = "a"},
                  .unanswered = [](const std::string& custom_id) { return "none " + custom_id; }},
                 103);
  }

  StateFolder folder_;
  Database database_{folder_.path()};
  FileTable files_{database_};
  BatchTable batches_{database_};
};

TEST_F(TablesTest, OnlyTheOwnerFindsAFile) {
  add_file("f", "a", "text");
  EXPECT_EQ(files_.find("a", "f")->bytes, 4);
  EXPECT_FALSE(files_.find("b", "f"));
  EXPECT_TRUE(files_.list("b", "", {}).empty());
}

TEST_F(TablesTest, AnUnfinishedUploadIsNotFoundAndDiscarded) {
  const int64_t key = files_.begin({.id = "f", .owner = "a"});
  files_.append(key, 0, "part");
  EXPECT_FALSE(files_.find("a", "f"));
  files_.discard_unfinished();
  EXPECT_EQ(files_.count(), 0);
  EXPECT_FALSE(files_.chunk(key, 0));
}

TEST_F(TablesTest, WhatHasArrivedOfAnUploadCounts) {
  const int64_t key = files_.begin({.id = "f", .owner = "a"});
  files_.append(key, 0, "part");
  files_.append(key, 1, "s");
  EXPECT_EQ(files_.bytes("a"), 5);
  files_.discard(key);
  EXPECT_EQ(files_.bytes("a"), 0);
}

TEST_F(TablesTest, TheInputsOfBatchesCountUntilTheyEnd) {
  BatchRecord batch{.id = "b", .owner = "a", .input_bytes = 7};
  batches_.create(batch);
  EXPECT_EQ(batches_.validating_bytes(), 7);
  batches_.begin(batch.key, 0, 101);
  EXPECT_EQ(batches_.validating_bytes(), 0);
  EXPECT_EQ(batches_.unfinished_bytes("a"), 7);
  EXPECT_EQ(batches_.unfinished_bytes("b"), 0);
  EXPECT_EQ(batches_.find("a", "b")->input_bytes, 7);
  end(batch, "completed");
  EXPECT_EQ(batches_.unfinished_bytes("a"), 0);
}

TEST_F(TablesTest, ListsContinueAfterAnItem) {
  for (const char* id : {"f1", "f2", "f3"}) add_file(id, "a", "");
  const auto ids = [](const std::vector<FileRecord>& files) {
    std::vector<std::string> found;
    for (const FileRecord& file : files) found.push_back(file.id);
    return found;
  };
  EXPECT_THAT(ids(files_.list("a", "", {.limit = 1})), ElementsAre("f3", "f2"));
  EXPECT_THAT(ids(files_.list("a", "", {.after = "f2"})), ElementsAre("f1"));
  EXPECT_THAT(ids(files_.list("a", "batch", {.after = "f1", .oldest_first = true})),
              ElementsAre("f2", "f3"));
  EXPECT_THAT(ids(files_.list("a", "batch_output", {})), ElementsAre());
}

TEST_F(TablesTest, ALineIsAnsweredOnce) {
  const BatchRecord batch = add_batch("b", 2);
  EXPECT_TRUE(batches_.answer(batch.key, 1, LineOutcome::kCompleted, "first"));
  EXPECT_FALSE(batches_.answer(batch.key, 1, LineOutcome::kFailed, "second"));
  EXPECT_EQ(batches_.find("a", "b")->completed, 1);
  EXPECT_EQ(batches_.find("a", "b")->failed, 0);
  EXPECT_EQ(batches_.next_line(batch.key, 0)->line, 2);
  EXPECT_FALSE(batches_.request_of(batch.key, 1));
}

TEST_F(TablesTest, TheRequestOfALineIsReadApart) {
  BatchRecord batch{.id = "b", .owner = "a"};
  batches_.create(batch);
  batches_.add_line(batch.key, {.line = 1, .custom_id = "one", .request = "{\"a\":\"\u00e9\"}"});
  const BatchLine line = *batches_.next_line(batch.key, 0);
  EXPECT_EQ(line.request, "");
  EXPECT_EQ(line.bytes, 10);
  EXPECT_EQ(batches_.request_of(batch.key, 1), "{\"a\":\"\u00e9\"}");
}

TEST_F(TablesTest, AnswersAreInTheOrderOfTheInput) {
  const BatchRecord batch = add_batch("b", 4);
  batches_.answer(batch.key, 3, LineOutcome::kCompleted, "three");
  batches_.answer(batch.key, 4, LineOutcome::kFailed, "four");
  batches_.answer(batch.key, 1, LineOutcome::kCompleted, "one");
  end(batch, "cancelled");
  EXPECT_EQ(content("out"), "one\nthree\n");
  EXPECT_EQ(content("err"), "none line 2\nfour\n");
  const BatchRecord ended = *batches_.find("a", "b");
  EXPECT_EQ(ended.status, "cancelled");
  EXPECT_EQ(ended.cancelled_at, 103);
  EXPECT_EQ(ended.output_file, "out");
  EXPECT_EQ(batches_.unfinished_count(), 0);
}

TEST_F(TablesTest, ABatchWithoutErrorsHasNoErrorFile) {
  const BatchRecord batch = add_batch("b", 1);
  batches_.answer(batch.key, 1, LineOutcome::kCompleted, "one");
  end(batch, "completed");
  EXPECT_EQ(batches_.find("a", "b")->error_file, "");
  EXPECT_EQ(content("err"), "no file");
}

TEST_F(TablesTest, ACustomIdIsUniqueInItsBatch) {
  const BatchRecord batch = add_batch("b", 1);
  EXPECT_FALSE(batches_.add_line(batch.key, {2, "line 1", "{}"}));
}

TEST_F(TablesTest, OnlyARunningBatchIsCancelled) {
  const BatchRecord batch = add_batch("b", 1);
  EXPECT_TRUE(batches_.cancel(batch.key, 102));
  EXPECT_FALSE(batches_.cancel(batch.key, 103));
  EXPECT_EQ(batches_.find("a", "b")->cancelling_at, 102);
}

TEST_F(TablesTest, TheOwnerOfMostEndedBatchesForgetsOne) {
  const auto add = [&](const char* id, const char* owner, const char* status) {
    BatchRecord batch{.id = id, .owner = owner, .status = status};
    batches_.create(batch);
  };
  add("b1", "b", "completed");
  add("a1", "a", "in_progress");
  add("a2", "a", "failed");
  add("a3", "a", "cancelled");
  EXPECT_EQ(batches_.unfinished_count("a"), 1);
  EXPECT_EQ(batches_.unfinished_count("b"), 0);
  EXPECT_TRUE(batches_.forget_one());
  EXPECT_FALSE(batches_.find("a", "a2"));
  EXPECT_TRUE(batches_.forget_one());
  EXPECT_FALSE(batches_.find("b", "b1"));
  EXPECT_TRUE(batches_.forget_one());
  EXPECT_FALSE(batches_.find("a", "a3"));
  EXPECT_FALSE(batches_.forget_one());
  EXPECT_TRUE(batches_.find("a", "a1"));
}

TEST_F(TablesTest, CountsTheFilesOfAnOwner) {
  add_file("f1", "a", "text");
  add_file("f2", "a", "longer text");
  add_file("f3", "b", "");
  EXPECT_EQ(files_.count("a"), 2);
  EXPECT_EQ(files_.bytes("a"), 15);
  EXPECT_EQ(files_.bytes("c"), 0);
}

TEST_F(TablesTest, ResponsesComeBackInTheirOrder) {
  ResponseTable responses(database_);
  responses.put({.serial = 5, .owner = "a", .id = "r5", .object = "{}"});
  responses.put({.serial = 3, .owner = "", .id = "r3", .previous_id = "r1", .previous_serial = 1});
  responses.put({.serial = 4, .owner = "a", .id = "r4"});
  responses.erase(4);
  const auto all = responses.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "r3");
  EXPECT_EQ(all[0].previous_serial, 1);
  EXPECT_EQ(all[1].object, "{}");
}

TEST_F(TablesTest, TheOldestModelsOfResponsesAreForgotten) {
  ResponseModelTable models(database_, /*most=*/2);
  models.put("a", "r1", "one");
  models.put("b", "r1", "two");
  EXPECT_EQ(models.find("a", "r1"), "one");
  EXPECT_EQ(models.find("b", "r1"), "two");
  models.put("a", "r1", "three");
  EXPECT_EQ(models.find("a", "r1"), "three");
  models.put("a", "r2", "four");
  EXPECT_FALSE(models.find("b", "r1"));
  EXPECT_EQ(models.find("a", "r1"), "three");
}

}  // namespace
}  // namespace octavo::state
