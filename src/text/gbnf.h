// gbnf.h - llama.cpp's grammar notation (GBNF), which vLLM also accepts, as a Lark grammar.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// True if `grammar` begins with NAME ::=, which no Lark grammar does.
bool is_gbnf(std::string_view grammar);

// Throws std::invalid_argument with the line of the mistake. A literal is one lexeme of the Lark
// grammar: where one literal begins another, only the longer one is matched.
std::string lark_from_gbnf(std::string_view gbnf);

}  // namespace octavo
