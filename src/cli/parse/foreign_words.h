// foreign_words.h - commands and flags of other programs, and what octavo does with them. Data only.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct ForeignCommand {
  std::string_view word;
  std::string_view command;  // octavo's command; empty: there is none
  std::string_view reason;   // without a command: what to do instead
};

enum class ForeignMeaning {
  kAlias,      // another name of octavo's flag `text`
  kModel,      // the value is the positional MODEL
  kAlreadySo,  // dropped: `text` says why octavo already does this
  kRefused,    // an error with the reason `text`
};

struct ForeignFlag {
  std::string_view name;
  // The values that the row is about, separated by |. "*": any value. Empty: the flag takes none.
  std::string_view values;
  ForeignMeaning meaning;
  std::string_view text;
};

std::span<const ForeignCommand> foreign_commands();

// Several rows may have the same name; the first one with a matching value applies. A flag that
// would change answers if it were dropped must not be kAlreadySo.
std::span<const ForeignFlag> foreign_flags();

}  // namespace octavo
