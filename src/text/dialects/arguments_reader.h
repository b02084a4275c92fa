// arguments_reader.h - a call's arguments in a dialect's own form, to JSON as they come.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/dialects/dialect.h"
#include "text/dialects/json_scanner.h"

namespace octavo {

class ArgumentsReader {
 public:
  virtual ~ArgumentsReader() = default;
  // Appends to `json` what became certain. A broken byte appends nothing.
  virtual Verdict take(char c, std::string& json) = 0;
  // The answer ended in the middle: what was held back.
  virtual std::string held() const { return {}; }
};

// `tools` outlive it.
std::unique_ptr<ArgumentsReader> make_arguments_reader(const ToolDialect& dialect,
                                                       const std::string& function,
                                                       const std::vector<Tool>& tools);
std::unique_ptr<ArgumentsReader> make_xml_reader(const std::string& function,
                                                 const std::vector<Tool>& tools);
std::unique_ptr<ArgumentsReader> make_bare_keys_reader(std::string_view quote);

}  // namespace octavo
