// gbnf.h - llama.cpp's grammar notation (GBNF), which vLLM also accepts, as a Lark grammar.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// True if `grammar` is written in GBNF: it contains "::=", which Lark does not use.
bool is_gbnf(std::string_view grammar);

// Throws std::invalid_argument with the line of the mistake.
std::string lark_from_gbnf(std::string_view gbnf);

}  // namespace octavo
