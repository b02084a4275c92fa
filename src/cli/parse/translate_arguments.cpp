#include "cli/parse/translate_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/nearest_names.h"
#include "cli/parse/foreign_words.h"
#include "cli/parse/usage_error.h"
#include "hub/aliases.h"

namespace octavo {
namespace {

using Say = std::function<void(const std::string&)>;

constexpr std::string_view kServedName = "--served-model-name";
constexpr std::string_view kLoraModules = "--lora-modules";

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_command(const CLI::App& app, const std::string& word) {
  const auto commands = commands_of(app);
  const auto found =
      std::ranges::find_if(commands, [&](const CLI::App* c) { return c->check_name(word); });
  return found == commands.end() ? nullptr : *found;
}

bool is_flag(std::string_view argument) {
  return argument.size() > 1 && argument.front() == '-' &&
         std::isdigit(static_cast<unsigned char>(argument[1])) == 0 && argument[1] != '.';
}

// Whether every part of "--max-len" occurs in `name`.
bool has_parts_of(std::string_view word, std::string_view name) {
  bool any = false;
  while (!word.empty()) {
    const size_t end = std::min(word.find('-'), word.size());
    const std::string_view part = word.substr(0, end);
    if (part.size() > 1 && name.find(part) == std::string_view::npos) return false;
    any = any || part.size() > 2;
    word.remove_prefix(std::min(end + 1, word.size()));
  }
  return any;
}

// "; did you mean A or B?", or ";" if no known name is similar.
std::string suggestion(std::string_view word, std::vector<std::string> known) {
  std::erase_if(known, [&](const std::string& name) {
    const size_t allowed = std::max<size_t>(2, word.size() / 3);
    return edits_between(word, name) > allowed && !has_parts_of(word, name);
  });
  if (known.empty()) return ";";
  return fmt::format("; did you mean {}?", fmt::join(nearest_names(word, known, 2), " or "));
}

bool looks_like_a_model(const std::string& word) {
  std::error_code error;
  return word.ends_with(".gguf") || word.find('/') != std::string::npos ||
         !resolve_alias(word).empty() || std::filesystem::exists(word, error);
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::string& word) {
  const std::string name = full_name(app);
  if (app.get_parent() == nullptr && looks_like_a_model(word)) {
    throw UsageError(
        fmt::format("{} is not a command; to chat with the model: octavo run {}", word, word));
  }
  std::vector<std::string> known;
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_group().empty()) continue;  // hidden
    known.push_back(command->get_name());
    for (const std::string& alias : command->get_aliases()) known.push_back(alias);
  }
  throw UsageError(fmt::format("unknown command {}{} {} --help lists the commands", word,
                               suggestion(word, std::move(known)), name));
}

// Octavo's name for another program's command; the word itself if it is none.
std::string translated_command(const std::string& word, const Say& say) {
  for (const ForeignCommand& row : foreign_commands()) {
    if (row.word != word) continue;
    if (row.command.empty()) throw UsageError(fmt::format("{}: {}", word, row.reason));
    say(fmt::format("octavo {} is octavo {}", word, row.command));
    return std::string(row.command);
  }
  return word;
}

bool matches(std::string_view values, std::string_view value) {
  if (values == "*") return true;
  while (!values.empty()) {
    const size_t end = std::min(values.find('|'), values.size());
    if (values.substr(0, end) == value) return true;
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return false;
}

// Translates the arguments after the command.
class FlagTranslator {
 public:
  FlagTranslator(const CLI::App& command, std::vector<std::string> arguments, const Say& say)
      : command_(command), arguments_(std::move(arguments)), say_(say) {}

  std::vector<std::string> run() {
    for (at_ = 0; at_ < arguments_.size(); ++at_) {
      const std::string& argument = arguments_[at_];
      if (argument == "--") {
        result_.insert(result_.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(at_),
                       arguments_.end());
        break;
      }
      if (is_flag(argument)) {
        flag(argument);
      } else {
        ++positionals_;
        result_.push_back(argument);
      }
    }
    place_names();
    if (!model_.empty()) result_.insert(result_.begin(), model_);
    return std::move(result_);
  }

 private:
  const CLI::Option* option(const std::string& name) const {
    return command_.get_option_no_throw(name);
  }

  void flag(const std::string& argument) {
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string typed = argument.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    const std::string name = own_spelling(typed);
    if (name == kServedName && option(name) != nullptr) return served_names(value);
    if (name == kLoraModules && option(name) != nullptr) return lora_modules(value);
    if (const CLI::Option* own = option(name)) return keep(name, *own, value);
    // A short flag with its value attached, such as -pTEXT.
    if (typed.size() > 2 && typed[1] != '-' && !is_foreign(typed) &&
        option(typed.substr(0, 2)) != nullptr) {
      result_.push_back(argument);
      return;
    }
    foreign(name, typed, value);
  }

  // vLLM also accepts --max_model_len.
  std::string own_spelling(const std::string& typed) const {
    if (!typed.starts_with("--") || option(typed) != nullptr) return typed;
    std::string dashed = typed;
    std::ranges::replace(dashed, '_', '-');
    return dashed;
  }

  void keep(const std::string& name, const CLI::Option& own,
            const std::optional<std::string>& value) {
    result_.push_back(value ? name + "=" + *value : name);
    const bool takes_value = own.get_items_expected_max() > 0;
    if (takes_value && !value && at_ + 1 < arguments_.size()) result_.push_back(arguments_[++at_]);
  }

  // Takes all following words, as vLLM does; place_names() returns the last one if it is the model.
  void served_names(const std::optional<std::string>& value) {
    std::vector<std::string> names;
    if (value) {
      names.push_back(*value);
    } else {
      while (at_ + 1 < arguments_.size() && !is_flag(arguments_[at_ + 1]))
        names.push_back(arguments_[++at_]);
      if (names.empty()) throw UsageError(fmt::format("{}: a name is missing", kServedName));
    }
    last_run_ = value ? 0 : names.size();
    names_.insert(names_.end(), names.begin(), names.end());
  }

  // vLLM accepts several after one flag. The model's own name is neither of their forms.
  void lora_modules(std::optional<std::string> value) {
    const auto add = [&](const std::string& module) {
      result_.emplace_back(kLoraModules);
      result_.push_back(module);
    };
    if (value) return add(*value);
    const auto is_module = [](const std::string& word) {
      return !is_flag(word) && (word.starts_with('{') || word.find('=') != std::string::npos);
    };
    if (at_ + 1 == arguments_.size() || !is_module(arguments_[at_ + 1]))
      throw UsageError(fmt::format("{}: name=path is missing", kLoraModules));
    while (at_ + 1 < arguments_.size() && is_module(arguments_[at_ + 1])) add(arguments_[++at_]);
  }

  void place_names() {
    if (positionals_ == 0 && model_.empty() && last_run_ > 1) {
      model_ = names_.back();
      names_.pop_back();
    }
    for (const std::string& name : names_) {
      result_.emplace_back(kServedName);
      result_.push_back(name);
    }
  }

  static bool is_foreign(std::string_view name) {
    return std::ranges::count(foreign_flags(), name, &ForeignFlag::name) > 0;
  }

  void foreign(const std::string& name, const std::string& typed,
               std::optional<std::string> value) {
    const auto rows = foreign_flags();
    const auto first = std::ranges::find(rows, std::string_view(name), &ForeignFlag::name);
    // Only commands that load a model know the flags of other engines.
    if (first == rows.end() || option("MODEL") == nullptr) refuse_unknown(typed);
    std::string shown = typed;
    if (first->values.empty()) {
      if (value && *value != "true" && *value != "True")
        throw UsageError(fmt::format("{}: takes no value", typed));
      value.reset();
    } else {
      if (!value) {
        if (at_ + 1 >= arguments_.size())
          throw UsageError(fmt::format("{}: the value is missing", typed));
        value = arguments_[++at_];
      }
      shown += " " + *value;
    }
    for (const ForeignFlag& row : rows)
      if (row.name == name && (!value || matches(row.values, *value)))
        return apply(row, typed, shown, value);
  }

  void apply(const ForeignFlag& row, const std::string& typed, const std::string& shown,
             const std::optional<std::string>& value) {
    switch (row.meaning) {
      case ForeignMeaning::kAlias: {
        const std::string own(row.text);
        if (option(own) == nullptr) {
          throw UsageError(fmt::format("unknown flag {}; its equivalent {} is not a flag of {}",
                                       typed, own, full_name(command_)));
        }
        if (own == kServedName) {
          names_.push_back(*value);
          last_run_ = 0;
          return;
        }
        result_.push_back(own);
        if (value) result_.push_back(*value);
        return;
      }
      case ForeignMeaning::kModel:
        model_ = *value;
        return;
      case ForeignMeaning::kAlreadySo:
        say_(fmt::format("{}: not needed, {}", shown, row.text));
        return;
      case ForeignMeaning::kRefused:
        throw UsageError(fmt::format("{}: not supported; {}", shown, row.text));
    }
  }

  [[noreturn]] void refuse_unknown(const std::string& typed) const {
    std::vector<std::string> known;
    for (const CLI::Option* each : command_.get_options()) {
      if (each->get_group().empty()) continue;
      for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
    }
    throw UsageError(fmt::format("unknown flag {}{} {} --help lists the flags", typed,
                                 suggestion(typed, std::move(known)), full_name(command_)));
  }

  const CLI::App& command_;
  std::vector<std::string> arguments_;
  const Say& say_;
  size_t at_ = 0;
  std::vector<std::string> result_;
  std::string model_;               // from -m
  std::vector<std::string> names_;  // of --served-model-name
  size_t last_run_ = 0;             // names after the last --served-model-name
  size_t positionals_ = 0;
};

}  // namespace

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

const CLI::App& selected_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const std::string& word : arguments) {
    const CLI::App* next = is_flag(word) ? nullptr : find_command(*command, word);
    if (next == nullptr) break;
    command = next;
  }
  return *command;
}

std::vector<std::string> translate_arguments(const CLI::App& app,
                                             const std::vector<std::string>& arguments,
                                             const Say& say) {
  std::vector<std::string> words;  // of the command: "bench", "serve"
  size_t at = 0;
  const CLI::App* command = &app;
  while (at < arguments.size() && !commands_of(*command).empty() && !is_flag(arguments[at])) {
    std::string word = arguments[at++];
    if (command == &app && word == "help") {
      std::vector<std::string> help(arguments.begin() + static_cast<std::ptrdiff_t>(at),
                                    arguments.end());
      help.emplace_back("--help");
      return help;
    }
    const CLI::App* next = find_command(*command, word);
    if (next == nullptr && command == &app) {
      word = translated_command(word, say);
      next = find_command(*command, word);
    }
    if (next == nullptr) refuse_command(*command, word);
    words.push_back(word);
    command = next;
  }
  const std::vector<std::string> rest(arguments.begin() + static_cast<std::ptrdiff_t>(at),
                                      arguments.end());
  if (command == &app) {
    if (!rest.empty() && app.get_option_no_throw(rest.front()) == nullptr) {
      throw UsageError(fmt::format("{} needs a command before it, for example octavo run {}",
                                   rest.front(), fmt::join(rest, " ")));
    }
    return rest;
  }
  std::vector<std::string> flags = FlagTranslator(*command, rest, say).run();
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

}  // namespace octavo
