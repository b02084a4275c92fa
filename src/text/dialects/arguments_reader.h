// arguments_reader.h - incrementally converts a call's arguments from a dialect's form to JSON.
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
  // Appends to `json` the text that `c` completes. Appends nothing on kBroken.
  virtual Verdict take(char c, std::string& json) = 0;
  // The text held back, for an answer that ends inside the arguments.
  virtual std::string held() const { return {}; }
};

// `tools` must outlive the reader.
std::unique_ptr<ArgumentsReader> make_arguments_reader(const ToolDialect& dialect,
                                                       const std::string& function,
                                                       const std::vector<Tool>& tools);
std::unique_ptr<ArgumentsReader> make_xml_reader(const std::string& function,
                                                 const std::vector<Tool>& tools);
std::unique_ptr<ArgumentsReader> make_bare_keys_reader(std::string_view quote);

}  // namespace octavo
