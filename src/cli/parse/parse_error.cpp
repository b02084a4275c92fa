#include "cli/parse/parse_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cli/parse/translate_arguments.h"

namespace octavo {
namespace {

// The part of `text` before `mark`, and the part after it; the second is empty without the mark.
std::pair<std::string, std::string> split_at(const std::string& text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

// The parser lists them from last to first.
std::string unexpected_arguments(const CLI::App& command,
                                 const std::vector<std::string>& arguments) {
  std::vector<std::string> left = command.remaining(true);
  std::vector<std::string> ordered;
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
    const auto found = std::ranges::find(left, *argument);
    if (found == left.end()) continue;
    left.erase(found);
    ordered.insert(ordered.begin(), *argument);
  }
  return fmt::format("unexpected argument{}: {}; quote a text that contains spaces",
                     ordered.size() == 1 ? "" : "s", fmt::join(ordered, " "));
}

// "Could not convert: --port = abc"
std::string wrong_value(const CLI::App& command, const std::string& text) {
  const auto [name, value] = split_at(text, " = ");
  const CLI::Option* option = command.get_option_no_throw(name);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  const bool whole = type.starts_with("INT") || type.starts_with("UINT");
  return fmt::format(
      "{}: {} is not a {}", name, value.empty() ? "an empty text" : value,
      whole ? "whole number in range" : (type.starts_with("FLOAT") ? "number" : "valid value"));
}

// "--device: gpu not in {auto,cpu,metal}"
std::string not_a_member(const std::string& text) {
  auto [typed, set] = split_at(text, " not in {");
  if (set.ends_with('}')) set.pop_back();
  std::string choices;
  for (const char c : set) choices += c == ',' ? std::string(", ") : std::string(1, c);
  const size_t last = choices.rfind(", ");
  if (last != std::string::npos) choices.replace(last, 2, " or ");
  return fmt::format("{} is not one of the values; use {}", typed, choices);
}

std::string names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; }))
    if (!each->get_group().empty()) names.push_back(each->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string missing_argument(const CLI::App& command, const std::string& text) {
  const std::string name = split_at(text, " is required").first;
  if (name == "A subcommand")
    return fmt::format("a command is missing; choose one of {}", names_of(command));
  if (name == "MODEL") {
    return fmt::format(
        "MODEL is missing; for example: {} qwen3-0.6b (a .gguf file, a model "
        "folder, a name on the hub, or an alias from octavo ls --aliases)",
        full_name(command));
  }
  return fmt::format("{} is missing", name);
}

std::string explained(const CLI::App& command, const CLI::ParseError& error,
                      const std::vector<std::string>& arguments) {
  const std::string text = error.what();
  const auto is = [&]<typename Kind>(const Kind*) {
    return dynamic_cast<const Kind*>(&error) != nullptr;
  };
  if (is(static_cast<const CLI::ExtrasError*>(nullptr)))
    return unexpected_arguments(command, arguments);
  if (is(static_cast<const CLI::RequiredError*>(nullptr))) return missing_argument(command, text);
  if (is(static_cast<const CLI::ArgumentMismatch*>(nullptr))) {
    const auto [name, rest] = split_at(text, ": 1 required ");
    return rest.empty() ? text : fmt::format("{}: the value is missing", name);
  }
  if (is(static_cast<const CLI::RequiresError*>(nullptr))) {
    const auto [name, other] = split_at(text, " requires ");
    return fmt::format("{} needs {} as well", name, other);
  }
  if (is(static_cast<const CLI::ExcludesError*>(nullptr))) {
    const auto [name, other] = split_at(text, " excludes ");
    return fmt::format("{} cannot be combined with {}", name, other);
  }
  if (text.find(" not in {") != std::string::npos) return not_a_member(text);
  if (const auto [start, rest] = split_at(text, "Could not convert: "); start.empty())
    return wrong_value(command, rest);
  return text;
}

}  // namespace

std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error,
                                const std::vector<std::string>& arguments) {
  const CLI::App& command = selected_command(app, arguments);
  return fmt::format("{}: {}", full_name(command), explained(command, error, arguments));
}

}  // namespace octavo
