#include "text/gbnf.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace octavo {
namespace {

std::string gbnf_error_of(const char* grammar) {
  try {
    lark_from_gbnf(grammar);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Gbnf, IsRecognisedByItsDefinitions) {
  EXPECT_TRUE(is_gbnf("root ::= \"a\""));
  EXPECT_TRUE(is_gbnf("# comment\n\nroot\n ::= \"a\""));
  EXPECT_FALSE(is_gbnf("start: \"a\""));
  EXPECT_FALSE(is_gbnf("start: NAME \"::=\" NAME\nNAME: /[a-z]+/"));
}

TEST(Gbnf, BecomesLark) {
  EXPECT_EQ(lark_from_gbnf(R"(# a comment
root ::= "a\n" | item-list+
item-list ::=
  ("x" | [0-9a\]] {2, 3}) ? .  # another
  | [^\x22]*)"),
            R"(start: g0_root
g0_root: "a\n" | g1_item_list+
g1_item_list: ("x" | /[\x{30}-\x{39}\x{61}\x{5D}]/{2,3})? /[\x{0}-\x{10FFFF}]/ | /[^\x{22}]/*
)");
}

TEST(Gbnf, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(gbnf_error_of("root ::= \"a"), "line 1: a string or character class is not closed");
  EXPECT_EQ(gbnf_error_of("root ::= \"a\"\n\n)"), "line 3: expected a rule's name");
  EXPECT_EQ(gbnf_error_of("root ::= missing"),
            "the rule missing is not defined; define it as NAME ::= ...");
  EXPECT_EQ(gbnf_error_of("other ::= \"a\""),
            "the rule root is not defined; define it as NAME ::= ...");
  EXPECT_EQ(gbnf_error_of("root ::= (\"a\""), "line 1: expected )");
  EXPECT_EQ(gbnf_error_of("root ::= \"a\"{,}"), "line 1: expected {N}, {N,} or {N,M}");
  EXPECT_EQ(gbnf_error_of("root ::= \"a\"{x}"), "line 1: expected {N}, {N,} or {N,M}");
  EXPECT_EQ(gbnf_error_of("root ::= \"\\uD800\""), "line 1: not a valid character code");
}

}  // namespace
}  // namespace octavo
