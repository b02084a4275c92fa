#include "vision/processor_fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

constexpr size_t kShownBytes = 60;  // of a value in an error

bool is_within(double value, double low, double high) { return value >= low && value <= high; }

}  // namespace

ProcessorFields::ProcessorFields(const nlohmann::json& object, std::string file)
    : object_(object), file_(std::move(file)) {}

const nlohmann::json* ProcessorFields::find(std::string_view key) const {
  const nlohmann::json* at = &object_;
  for (;;) {
    const size_t dot = key.find('.');
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key.substr(0, dot));
    if (found == at->end() || found->is_null()) return nullptr;
    at = &*found;
    if (dot == std::string_view::npos) return at;
    key.remove_prefix(dot + 1);
  }
}

void ProcessorFields::refuse(std::string_view key, std::string_view reason) const {
  const nlohmann::json* value = find(key);
  std::string shown = "missing";
  if (value != nullptr) {
    shown = value->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (shown.size() > kShownBytes) shown = shown.substr(0, kShownBytes) + "...";
  }
  throw SetupError(fmt::format("{}: {} is {}; {}", file_, key, shown, reason));
}

std::optional<int64_t> ProcessorFields::integer(std::string_view key, int64_t low,
                                                int64_t high) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  // Compared as a double first: an unsigned number may be above int64's range.
  if (!value->is_number_integer() || !is_within(value->get<double>(), -1e18, 1e18) ||
      value->get<int64_t>() < low || value->get<int64_t>() > high) {
    refuse(key, fmt::format("it must be an integer from {} to {}", low, high));
  }
  return value->get<int64_t>();
}

std::optional<double> ProcessorFields::number(std::string_view key, double low, double high) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !is_within(value->get<double>(), low, high)) {
    refuse(key, fmt::format("it must be a number from {} to {}", low, high));
  }
  return value->get<double>();
}

std::optional<std::array<double, 3>> ProcessorFields::per_channel(std::string_view key, double low,
                                                                  double high) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::array<double, 3> numbers{};
  bool fits = value->is_array() && value->size() == numbers.size();
  for (size_t channel = 0; fits && channel < numbers.size(); ++channel) {
    const nlohmann::json& number = (*value)[channel];
    fits = number.is_number() && is_within(number.get<double>(), low, high);
    if (fits) numbers[channel] = number.get<double>();
  }
  if (!fits) refuse(key, fmt::format("it must be three numbers from {} to {}", low, high));
  return numbers;
}

std::optional<bool> ProcessorFields::flag(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(key, "it must be true or false");
  return value->get<bool>();
}

std::optional<std::string> ProcessorFields::text(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(key, "it must be a string");
  return value->get<std::string>();
}

bool ProcessorFields::is_object(std::string_view key) const {
  const nlohmann::json* value = find(key);
  return value != nullptr && value->is_object();
}

}  // namespace octavo
