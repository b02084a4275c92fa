#include "models/format/json_events.h"

#include <fmt/format.h>

#include "base/error.h"
#include "models/format/printable.h"

namespace octavo {

void JsonEvents::parse(std::string_view text) {
  // The JSON library treats NUL as the end of the text and would ignore what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(fmt::format("the JSON text is not valid at byte {} (a NUL)", nul));
  }
  nlohmann::json::sax_parse(text.begin(), text.end(), this);
}

bool JsonEvents::number_float(number_float_t, const string_t& text) {
  unexpected(fmt::format("the number {}", in_quotes(text)));
}

bool JsonEvents::parse_error(std::size_t position, const std::string&,
                             const nlohmann::detail::exception&) {
  // The library's own message repeats the last token, which may be the whole file.
  fail(fmt::format("the JSON text is not valid at byte {}; the file is damaged, download it again",
                   position));
}

void JsonEvents::fail(std::string_view message) const {
  throw SetupError(fmt::format("{}: {}", file_name_, message));
}

void JsonEvents::unexpected(std::string_view found) const {
  fail(fmt::format("{}: {} is not allowed here", where(), found));
}

}  // namespace octavo
