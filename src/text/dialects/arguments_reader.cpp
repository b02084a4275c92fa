#include "text/dialects/arguments_reader.h"

#include "text/dialects/call_sink.h"

namespace octavo {
namespace {

// A JSON object, unchanged.
class JsonReader : public ArgumentsReader {
 public:
  Verdict take(char c, std::string& json) override {
    if (!begun_) {
      if (is_space(c)) return Verdict::kMore;
      if (c != '{') return Verdict::kBroken;
      begun_ = true;
    }
    const Verdict verdict = scanner_.take(c);
    if (verdict != Verdict::kBroken) json += c;
    return verdict;
  }

 private:
  JsonScanner scanner_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<ArgumentsReader> make_arguments_reader(const ToolDialect& dialect,
                                                       const std::string& function,
                                                       const std::vector<Tool>& tools) {
  switch (dialect.form) {
    case ArgumentsForm::kXmlParameters:
      return make_xml_reader(function, tools);
    case ArgumentsForm::kBareKeys:
      return make_bare_keys_reader(dialect.quote);
    default:
      return std::make_unique<JsonReader>();
  }
}

}  // namespace octavo
