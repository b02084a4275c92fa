#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

// The result if `text` arrives in pieces of `size` bytes.
std::string run(StopStringsOptions options, std::string_view text, size_t size) {
  StopStrings stops(std::move(options));
  std::string out;
  for (size_t i = 0; i < text.size(); i += size) {
    const auto step = stops.push(text.substr(i, size));
    out += step.text;
    if (step.matched) return out + "|" + step.stop;
  }
  return out + stops.finish();
}

TEST(StopStrings, EndsTheTextBeforeTheStop) {
  EXPECT_EQ(run({.stops = {"</s>"}}, "abc</s>def", 1), "abc|</s>");
  EXPECT_EQ(run({.stops = {"</s>"}, .include_stop_str = true}, "abc</s>def", 1), "abc</s>|</s>");
}

TEST(StopStrings, HoldsBackOnlyAPossibleStopString) {
  StopStrings stops({.stops = {"\n\nUser"}});
  EXPECT_EQ(stops.push("ab\n").text, "ab");
  EXPECT_EQ(stops.push("\n").text, "");
  EXPECT_EQ(stops.push("\n").text, "\n");  // the first newline can no longer begin a stop string
  EXPECT_EQ(stops.push("x").text, "\n\nx");
  EXPECT_EQ(stops.push("\n\nUs").text, "");
  EXPECT_EQ(stops.finish(), "\n\nUs");
}

TEST(StopStrings, TheFirstCompleteStopStringWins) {
  EXPECT_EQ(run({.stops = {"abcd", "b"}}, "xabcd", 5), "xa|b");
  EXPECT_EQ(run({.stops = {"c", "abc"}}, "xabc", 4), "x|abc");
}

TEST(StopStrings, NoStopsAndEmptyStopsChangeNothing) {
  EXPECT_EQ(run({}, "abc", 2), "abc");
  EXPECT_EQ(run({.stops = {""}}, "abc", 2), "abc");
}

TEST(StopStrings, NothingComesAfterAMatch) {
  StopStrings stops({.stops = {"x"}});
  EXPECT_TRUE(stops.push("ax").matched);
  EXPECT_EQ(stops.push("more").text, "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, SplittingTheTextDoesNotMatter) {
  std::mt19937 random(1);
  const auto letters = [&](size_t low, size_t high) {
    std::string text(std::uniform_int_distribution<size_t>(low, high)(random), 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const StopStringsOptions options{.stops = {letters(1, 5), letters(3, 6)},
                                     .include_stop_str = random() % 2 == 0};
    const std::string text = letters(0, 30);
    const std::string whole = run(options, text, 100);
    for (const size_t size : {1, 2, 3, 7}) EXPECT_EQ(run(options, text, size), whole) << text;
  }
}

}  // namespace
}  // namespace octavo
