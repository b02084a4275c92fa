#include "cli/chat/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <deque>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FakeReader : public LineReader {
 public:
  ReadLine read(Prompt prompt) override {
    prompts.push_back(prompt);
    if (lines.empty()) return {};
    ReadLine line = lines.front();
    lines.pop_front();
    return line;
  }
  void line(const std::string& text) { lines.push_back({ReadLine::Kind::kLine, text}); }
  void interrupt(const std::string& text = "") {
    lines.push_back({ReadLine::Kind::kInterrupt, text});
  }

  std::deque<ReadLine> lines;
  std::vector<Prompt> prompts;
};

// An in-memory stream.
class Page {
 public:
  ~Page() { close(); }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {data_, size_};
  }

 private:
  void close() {
    std::fclose(file_);
    std::free(data_);
  }
  char* data_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_ = open_memstream(&data_, &size_);
};

// A chat with a model that answers "one two three." and records its requests.
class ChatShellTest : public testing::Test {
 protected:
  TextAnswer generate(const TextRequest& request, const Llm::OnText& on_text) {
    if (refuse) throw RequestError(400, "prompt", "has 99 tokens");
    std::string asked;
    for (const auto& message : request.messages) {
      asked += message["role"].get<std::string>().substr(0, 1) + ":";
      const auto& content = message["content"];
      if (content.is_string()) {
        asked += content.get<std::string>();
      } else {
        for (const auto& part : content) {
          asked += part["type"] == "text"
                       ? part["text"].get<std::string>()
                       : "[" + request.images.at(part["index"].get<size_t>()).field + "]";
        }
      }
      asked += "|";
    }
    requests.push_back(asked);
    seeds.push_back(request.engine.sampling.seed);
    TextAnswer answer;
    answer.prompt_tokens.resize(static_cast<size_t>(prompt_tokens));
    answer.generation.finish_reason = FinishReason::kStop;
    if (interrupt_at == "the prompt") {
      std::raise(SIGINT);
      EXPECT_TRUE(request.cancelled());
      interrupt_at.clear();
      answer.generation.finish_reason = FinishReason::kAbort;
      return answer;
    }
    for (const char* piece : {"one", " two", " three."}) {
      if (interrupt_at == piece) std::raise(SIGINT);
      answer.text += piece;
      answer.generation.tokens.push_back(1);
      if (on_text(piece)) continue;
      answer.generation.finish_reason = FinishReason::kAbort;
      break;
    }
    return answer;
  }

  bool run(InterruptScope* interrupt = nullptr) {
    return ChatShell({.name = "m", .context = 100, .images_refused = images_refused}, session,
                     reader, screen, interrupt)
        .run();
  }

  bool refuse = false;
  std::string images_refused;
  int prompt_tokens = 5;
  std::string interrupt_at;
  std::vector<std::string> requests;
  std::vector<uint64_t> seeds;
  Page answers, notes;
  FakeReader reader;
  ChatScreen screen{{.answers = answers.file(), .notes = notes.file(), .watched = true}};
  ChatSession session{[this](const TextRequest& request, const Llm::OnText& on_text) {
                        return generate(request, on_text);
                      },
                      TextRequest{}};
};

TEST_F(ChatShellTest, KnowsOllamasCommands) {
  reader.line("/?");
  reader.line("/bye");
  reader.line("not read");
  EXPECT_TRUE(run());
  EXPECT_THAT(notes.text(), HasSubstr("/retry"));
  EXPECT_THAT(notes.text(), Not(HasSubstr("Unknown command")));
  EXPECT_THAT(requests, IsEmpty());
}

TEST_F(ChatShellTest, SendsTheConversationSoFar) {
  reader.line("a");
  reader.line("b");
  EXPECT_TRUE(run());
  EXPECT_THAT(requests, ElementsAre("u:a|", "u:a|a:one two three.|u:b|"));
  EXPECT_EQ(answers.text(), "one two three.\none two three.\n");
}

TEST_F(ChatShellTest, AMessageInterruptedBeforeItsAnswerIsForgotten) {
  InterruptScope interrupt;
  interrupt_at = "the prompt";
  reader.line("a");
  reader.line("b");
  EXPECT_TRUE(run(&interrupt));
  EXPECT_THAT(requests, ElementsAre("u:a|", "u:b|"));
}

TEST_F(ChatShellTest, AnInterruptKeepsThePartOfTheAnswerAndGoesOn) {
  InterruptScope interrupt;
  interrupt_at = " two";
  reader.line("a");
  reader.line("b");
  EXPECT_TRUE(run(&interrupt));
  EXPECT_THAT(requests, ElementsAre("u:a|", "u:a|a:one two|u:b|"));
  EXPECT_THAT(notes.text(), HasSubstr("stopped"));
}

TEST_F(ChatShellTest, ARefusedMessageIsForgotten) {
  reader.line("first");
  session.send("earlier", [](std::string_view) { return true; });
  refuse = true;
  EXPECT_FALSE(run());
  EXPECT_THAT(notes.text(), HasSubstr("has 99 tokens"));
  EXPECT_THAT(notes.text(), HasSubstr("/reset"));
  refuse = false;
  reader.line("second");
  EXPECT_TRUE(run());
  EXPECT_EQ(requests.back(), "u:earlier|a:one two three.|u:second|");
}

TEST_F(ChatShellTest, ResetForgetsAndSystemStartsAnew) {
  for (const char* line :
       {"a", "/reset", "b", "/system Be brief.", "c", "/system", "/system none", "d"}) {
    reader.line(line);
  }
  run();
  EXPECT_THAT(requests, ElementsAre("u:a|", "u:b|", "s:Be brief.|u:c|", "u:d|"));
  EXPECT_THAT(notes.text(), HasSubstr("\nBe brief.\n"));
}

TEST_F(ChatShellTest, RetryAsksTheSameWithAnotherSeed) {
  reader.line("/retry");
  reader.line("a");
  reader.line("/retry");
  run();
  EXPECT_THAT(requests, ElementsAre("u:a|", "u:a|"));
  EXPECT_NE(seeds[0], seeds[1]);
  EXPECT_THAT(notes.text(), HasSubstr("no message"));
}

TEST_F(ChatShellTest, ImagesGoWithTheNextMessageAndStayInTheConversation) {
  session.attach({.field = "1.png"});
  session.attach({.field = "2.png"});
  reader.line("a");
  reader.line("b");
  EXPECT_TRUE(run());
  EXPECT_THAT(requests,
              ElementsAre("u:[1.png][2.png]a|", "u:[1.png][2.png]a|a:one two three.|u:b|"));
  EXPECT_THAT(session.markdown("T"), HasSubstr("## User\n\n![](<1.png>)\n\n![](<2.png>)\n\na\n"));
}

TEST_F(ChatShellTest, ResetForgetsAttachedImages) {
  session.attach({.field = "1.png"});
  reader.line("/reset");
  reader.line("a");
  run();
  EXPECT_THAT(requests, ElementsAre("u:a|"));
}

TEST_F(ChatShellTest, RetryKeepsTheImages) {
  session.attach({.field = "1.png"});
  reader.line("a");
  reader.line("/retry");
  run();
  EXPECT_THAT(requests, ElementsAre("u:[1.png]a|", "u:[1.png]a|"));
}

TEST_F(ChatShellTest, AnImageThatCannotBeReadIsNotAttached) {
  reader.line("/image");
  reader.line("/image /nowhere/a.png");
  reader.line("a");
  EXPECT_TRUE(run());
  EXPECT_THAT(requests, ElementsAre("u:a|"));
  EXPECT_THAT(notes.text(), HasSubstr("Missing file name: /image FILE"));
  EXPECT_THAT(notes.text(), HasSubstr("/nowhere/a.png: is not a file"));
}

TEST_F(ChatShellTest, AModelWithoutImagesSaysWhy) {
  images_refused = "the checkpoint has no vision tower";
  reader.line("/image a.png");
  run();
  EXPECT_THAT(notes.text(), HasSubstr("Images cannot be sent: the checkpoint has no vision tower"));
}

TEST_F(ChatShellTest, AnUnknownCommandListsTheKnownOnes) {
  reader.line("/foo");
  EXPECT_TRUE(run());
  EXPECT_THAT(requests, IsEmpty());
  EXPECT_THAT(notes.text(), HasSubstr("Unknown command /foo. Commands: /help /reset"));
}

TEST_F(ChatShellTest, LeavesAtExitOrTheSecondInterruptInARow) {
  reader.line("/exit");
  reader.line("a");
  run();
  reader.lines.clear();
  reader.interrupt();
  reader.interrupt("text");  // discards a line, so the next interrupt counts as the first
  reader.interrupt();
  reader.interrupt();
  reader.line("never");
  run();
  EXPECT_EQ(reader.lines.size(), 1u);
  EXPECT_THAT(requests, IsEmpty());
}

TEST_F(ChatShellTest, AnInterruptGivesUpAnOpenBlock) {
  reader.line("\"\"\"");
  reader.interrupt();
  reader.line("a");
  run();
  EXPECT_THAT(requests, ElementsAre("u:a|"));
  EXPECT_THAT(reader.prompts, ElementsAre(Prompt::kMessage, Prompt::kContinuation, Prompt::kMessage,
                                          Prompt::kMessage));
}

TEST_F(ChatShellTest, WarnsWhenTheContextIsNearlyFull) {
  reader.line("a");
  run();
  EXPECT_THAT(notes.text(), Not(HasSubstr("full")));
  prompt_tokens = 90;
  reader.line("b");
  run();
  EXPECT_THAT(notes.text(), HasSubstr("93% full (93 of 100 tokens); /reset"));
}

TEST(ChatSession, MarkdownHoldsAllThatWasSaid) {
  ChatSession session(
      [](const TextRequest&, const Llm::OnText&) {
        TextAnswer answer;
        answer.text = "Hello.";
        answer.generation.tokens = {1};
        return answer;
      },
      TextRequest{});
  session.set_system("Be brief.");
  session.send("Hi", [](std::string_view) { return true; });
  EXPECT_EQ(session.markdown("T"),
            "# T\n\n## System\n\nBe brief.\n\n## User\n\nHi\n\n## Assistant\n\nHello.\n");
}

TEST(ChatScreen, NoControlCodesReachTheTerminal) {
  EXPECT_EQ(without_controls("a\x1b[2Jb\r\n\t\xC2\x9B"
                             "c\xC2\xA0\xE6\x97\xA5\x7F"),
            "a[2Jb\n\tc\xC2\xA0\xE6\x97\xA5");
}

TEST(ChatScreen, StatsSayWhyAnAnswerWasCut) {
  TextAnswer answer;
  answer.prompt_tokens.resize(7);
  answer.generation = {.tokens = {1, 2, 3},
                       .finish_reason = FinishReason::kLength,
                       .cached_tokens = 4,
                       .prefill_seconds = 1,
                       .decode_seconds = 0.5};
  EXPECT_EQ(stats_of(answer, 100),
            "3 tokens, 4.0 tok/s; prompt 7 tokens, 4 cached; cut off: --max-tokens");
  EXPECT_THAT(stats_of(answer, 10), HasSubstr("the context is full"));
}

}  // namespace
}  // namespace octavo
