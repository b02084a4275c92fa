#include "generation/grammar_compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

using Kind = GrammarSource::Kind;

GrammarCompiler compiler_of(const GgufVocab& vocab, TokenId stop,
                            GrammarCacheOptions options = {}) {
  return GrammarCompiler(tokenizer_of(vocab), 300, {stop}, options);
}

int allowed_tokens(ConstraintState& state) {
  const auto words = state.allowed();
  return std::accumulate(words.begin(), words.end(), 0,
                         [](int sum, uint32_t word) { return sum + std::popcount(word); });
}

TEST(GrammarCompiler, EveryWayToSpellAnAnswerIsAllowed) {
  auto byte_level = compiler_of(byte_level_vocab(), 258);
  const auto state = byte_level.compile({.kind = Kind::kRegex, .text = "hello"})->begin();
  EXPECT_EQ(allowed_tokens(*state), 2);  // "h" and "he"
  EXPECT_TRUE(state->accept(256));
  EXPECT_EQ(allowed_tokens(*state), 2);  // "l" and "ll"

  auto pieces = compiler_of(sentence_piece_vocab(), 2);
  const auto words = pieces.compile({.kind = Kind::kRegex, .text = "( ab)+"})->begin();
  EXPECT_EQ(allowed_tokens(*words), 3);  // a space as a byte and as a piece, " ab"
  EXPECT_TRUE(words->accept(263));
  EXPECT_EQ(allowed_tokens(*words), 4);  // and the end
  EXPECT_TRUE(words->accept(2));
  EXPECT_EQ(allowed_tokens(*words), 0);
}

TEST(GrammarCompiler, TheSameSourceIsCompiledOnce) {
  auto compiler = compiler_of(byte_level_vocab(), 258);
  const GrammarSource source{.kind = Kind::kRegex, .text = "a+"};
  const auto first = compiler.compile(source);
  EXPECT_NE(compiler.compile(source), first);  // each request has a lexer of its own
  EXPECT_EQ(compiler.compilations(), 1);
  compiler.compile({.kind = Kind::kLark, .text = "start: \"a\""});
  EXPECT_EQ(compiler.compilations(), 2);
  GrammarSource spaced{.text = "{}"};
  compiler.compile(spaced);
  spaced.no_whitespace = true;
  compiler.compile(spaced);
  EXPECT_EQ(compiler.compilations(), 4);
}

TEST(GrammarCompiler, CachesTheMostRecentlyUsed) {
  auto compiler = compiler_of(byte_level_vocab(), 258, {.max_grammars = 2});
  const auto source = [](const char* text) {
    return GrammarSource{.kind = Kind::kRegex, .text = text};
  };
  compiler.compile(source("a"));
  const auto b = compiler.compile(source("b"));
  compiler.compile(source("a"));
  compiler.compile(source("c"));
  EXPECT_EQ(compiler.cached_grammars(), 2u);
  EXPECT_EQ(compiler.compilations(), 3);
  compiler.compile(source("a"));
  EXPECT_EQ(compiler.compilations(), 3);
  compiler.compile(source("b"));
  EXPECT_EQ(compiler.compilations(), 4);
  EXPECT_TRUE(b->begin()->accept('b'));  // an evicted constraint stays valid

  auto small = compiler_of(byte_level_vocab(), 258, {.max_source_bytes = 100});
  small.compile(source("a"));
  small.compile({.kind = Kind::kRegex, .text = std::string(85, 'b')});
  EXPECT_EQ(small.cached_grammars(), 1u);
  small.compile({.kind = Kind::kRegex, .text = std::string(200, 'b')});
  EXPECT_EQ(small.cached_grammars(), 0u);
}

TEST(GrammarCompiler, RefusalsNameTheFieldAndStayShort) {
  auto compiler = compiler_of(byte_level_vocab(), 258);
  const auto refusal = [&](GrammarSource source) -> std::string {
    try {
      compiler.compile(source, "field");
    } catch (const RequestError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_EQ(error.param(), "field");
      return error.what();
    }
    return "compiled";
  };
  EXPECT_NE(refusal({.kind = Kind::kRegex, .text = "(a"}).find("regex"), std::string::npos);
  EXPECT_LT(refusal({.kind = Kind::kRegex, .text = std::string(100000, '(')}).size(), 600u);
  EXPECT_NE(refusal({.text = std::string(1 << 20, ' ')}).find("too large"), std::string::npos);
  EXPECT_EQ(compiler.cached_grammars(), 0u);
}

TEST(GrammarCompiler, TheGrammarsOfOpenRequestsShareALimit) {
  auto probe = compiler_of(byte_level_vocab(), 258);
  const GrammarSource source{.kind = Kind::kRegex, .text = "a+"};
  const auto open = probe.compile(source);
  const uint64_t one = probe.open_bytes();
  ASSERT_GT(one, 0u);

  auto compiler = compiler_of(byte_level_vocab(), 258, {.max_open_bytes = one * 5 / 2});
  auto first = compiler.compile(source);
  const auto second = compiler.compile(source);
  try {
    compiler.compile(source);
    ADD_FAILURE() << "the limit was exceeded";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 429);
  }
  first.reset();
  EXPECT_EQ(compiler.open_bytes(), one);
  EXPECT_TRUE(compiler.compile(source)->begin()->accept('a'));

  auto tiny = compiler_of(byte_level_vocab(), 258, {.max_open_bytes = one - 1});
  try {
    tiny.compile(source);
    ADD_FAILURE() << "it can never fit";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
  }
}

TEST(GrammarCompiler, ASlowGrammarEndsItsRequestAlone) {
  GrammarCacheOptions options;
  options.mask_time.request_capacity = TimeStore::Milliseconds(0);
  options.mask_time.request_refill = 0;
  options.mask_time.slow_mask = TimeStore::Milliseconds(0);
  auto compiler = compiler_of(byte_level_vocab(), 258, options);
  const auto slow = compiler.compile({.kind = Kind::kRegex, .text = "a+"});
  EXPECT_THROW(slow->begin()->allowed(), std::runtime_error);
}

TEST(GrammarCompiler, ThreadsShareIt) {
  auto compiler = compiler_of(byte_level_vocab(), 258, {.max_grammars = 3});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto state =
            compiler
                .compile({.kind = Kind::kRegex, .text = fmt::format("a{{{}}}", (i + t) % 5 + 1)})
                ->begin();
        EXPECT_TRUE(state->accept('a'));
        EXPECT_EQ(allowed_tokens(*state), 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace octavo
