#include "cli/chat/input.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

std::string message_of(const std::optional<ChatInput>& input) {
  if (!input) return "(nothing)";
  return input->is_command ? "(command)" : input->text;
}

TEST(InputAssembler, ALineIsAMessage) {
  InputAssembler input;
  EXPECT_EQ(message_of(input.push("  hello \t")), "hello");
  EXPECT_FALSE(input.pending());
}

TEST(InputAssembler, EmptyLinesAreSkipped) {
  InputAssembler input;
  EXPECT_FALSE(input.push(" "));
  EXPECT_FALSE(input.push("\"\"\"\"\"\""));
  EXPECT_FALSE(input.pending());
}

TEST(InputAssembler, ABackslashContinuesTheLine) {
  InputAssembler input;
  EXPECT_FALSE(input.push("one\\"));
  EXPECT_TRUE(input.pending());
  EXPECT_FALSE(input.push("/two\\"));
  EXPECT_EQ(message_of(input.push("three")), "one\n/two\nthree");
  EXPECT_EQ(message_of(input.push("four")), "four");
}

TEST(InputAssembler, QuotesEncloseAMessageOfSeveralLines) {
  InputAssembler input;
  EXPECT_FALSE(input.push("\"\"\""));
  EXPECT_FALSE(input.push("/help \\"));
  EXPECT_FALSE(input.push(""));
  EXPECT_EQ(message_of(input.push("  end\"\"\" ")), "/help \\\n\n  end");
  EXPECT_EQ(message_of(input.push("\"\"\"in one line\"\"\"")), "in one line");
}

TEST(InputAssembler, ClosingQuotesAloneAddNoLine) {
  InputAssembler input;
  input.push("\"\"\"first");
  EXPECT_EQ(message_of(input.push("\"\"\"")), "first");
}

TEST(InputAssembler, ASlashStartsACommand) {
  InputAssembler input;
  const auto command = input.push(" /system  Be brief. ");
  ASSERT_TRUE(command && command->is_command);
  EXPECT_EQ(command->command, "system");
  EXPECT_EQ(command->text, "Be brief.");
}

TEST(InputAssembler, DoubledSlashesAndPathsAreMessages) {
  InputAssembler input;
  EXPECT_EQ(message_of(input.push("//help")), "/help");
  EXPECT_EQ(message_of(input.push("/usr/bin is full")), "/usr/bin is full");
}

TEST(InputAssembler, FinishGivesWhatIsOpen) {
  InputAssembler input;
  input.push("\"\"\"open");
  EXPECT_EQ(message_of(input.finish()), "open");
  EXPECT_FALSE(input.finish());
}

TEST(InputAssembler, InvalidUtf8IsReplaced) {
  InputAssembler input;
  EXPECT_EQ(message_of(input.push("a\xFF")), "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace octavo
