// json_events.h - base class of streaming readers for JSON files of a known structure: values are
// checked one by one, so a hostile file is rejected at its first error and never held in memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace octavo {

// A reader overrides the values it accepts; all others are rejected with unexpected().
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Parses all of `text`. Throws SetupError with `file_name` if it is not valid JSON.
  void parse(std::string_view text);

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { unexpected("a number"); }
  bool number_float(number_float_t, const string_t& text) override;
  bool string(string_t&) override { unexpected("a string"); }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool start_object(std::size_t) override { unexpected("an object"); }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { unexpected("an array"); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override;

 protected:
  explicit JsonEvents(std::string_view file_name) : file_name_(file_name) {}

  [[noreturn]] void fail(std::string_view message) const;
  [[noreturn]] void unexpected(std::string_view found) const;
  // The current position for unexpected(), e.g. "tensor \"a\"".
  virtual std::string where() const = 0;

 private:
  std::string_view file_name_;
};

}  // namespace octavo
