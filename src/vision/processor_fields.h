// processor_fields.h - reads settings of a JSON file that may contain anything. Any thread. No MLX.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

// A JSON object and its file's name. A key may have dots: size.longest_edge is inside the object
// size. A key that is missing or null has no value; SetupError names the file and the key of a
// value that has another type or is out of its range.
class ProcessorFields {
 public:
  // `object` must outlive the reader.
  ProcessorFields(const nlohmann::json& object, std::string file);

  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> number(std::string_view key, double low, double high) const;
  std::optional<std::array<double, 3>> per_channel(std::string_view key, double low,
                                                   double high) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  bool is_object(std::string_view key) const;

  // Throws SetupError about the value of a key.
  [[noreturn]] void refuse(std::string_view key, std::string_view reason) const;

 private:
  const nlohmann::json* find(std::string_view key) const;

  const nlohmann::json& object_;
  std::string file_;
};

}  // namespace octavo
