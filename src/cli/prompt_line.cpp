#include "cli/prompt_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/images/image_source.h"
#include "base/error.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

// A JSON value and the name of its field, for error messages.
class FieldValue {
 public:
  FieldValue(std::string_view name, const Json& json) : name_(name), json_(json) {}

  void read(std::string& to) const {
    if (!json_.is_string()) reject("a string");
    to = json_.get<std::string>();
  }
  void read(bool& to) const {
    if (!json_.is_boolean()) reject("true or false");
    to = json_.get<bool>();
  }
  void read(int& to) const {
    using Limits = std::numeric_limits<int>;
    if (!json_.is_number_integer()) reject("an integer");
    const bool fits = json_.is_number_unsigned()
                          ? json_.get<uint64_t>() <= static_cast<uint64_t>(Limits::max())
                          : json_.get<int64_t>() >= Limits::min();
    if (!fits) reject("a 32-bit integer");
    to = json_.get<int>();
  }
  void read(uint64_t& to) const {
    if (!json_.is_number_unsigned()) reject("an integer of at least 0");
    to = json_.get<uint64_t>();
  }
  void read(float& to) const {
    if (!json_.is_number()) reject("a number");
    to = json_.get<float>();
  }
  template <typename T>
  void read(std::vector<T>& to) const {
    if (!json_.is_array()) reject("a list");
    to.clear();
    for (const Json& value : json_) FieldValue(name_, value).read(to.emplace_back());
  }
  // {"42": -1.5}
  void read(std::vector<std::pair<TokenId, float>>& to) const {
    constexpr auto kWanted = "an object from token ids to numbers, like {\"42\": -1.5}";
    if (!json_.is_object()) reject(kWanted);
    to.clear();
    for (const auto& [key, bias] : json_.items()) {
      auto& [token, number] = to.emplace_back();
      const char* end = key.data() + key.size();
      const auto parsed = std::from_chars(key.data(), end, token);
      if (parsed.ec != std::errc{} || parsed.ptr != end) reject(kWanted);
      FieldValue(name_, bias).read(number);
    }
  }

  const Json& json() const { return json_; }
  [[noreturn]] void reject(std::string_view wanted) const {
    constexpr size_t kShown = 60;
    std::string found = json_.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (found.size() > kShown) found = found.substr(0, kShown) + "...";
    throw RequestError(400, std::string(name_), fmt::format("must be {}, not {}", wanted, found));
  }

 private:
  std::string_view name_;
  const Json& json_;
};

using Reader = void (*)(const FieldValue& value, PromptLine& line);

template <auto kMember>
void sampling(const FieldValue& value, PromptLine& line) {
  value.read(line.request.engine.sampling.*kMember);
}

template <auto kMember>
void engine(const FieldValue& value, PromptLine& line) {
  value.read(line.request.engine.*kMember);
}

void read_id(const FieldValue& value, PromptLine& line) {
  if (!value.json().is_string() && !value.json().is_number_integer())
    value.reject("a string or an integer");
  line.id = value.json();
}

void read_prompt(const FieldValue& value, PromptLine& line) { value.read(line.request.prompt); }

void read_messages(const FieldValue& value, PromptLine& line) {
  if (!value.json().is_array()) value.reject("a list of messages");
  line.request.messages = value.json();
}

void read_prompt_tokens(const FieldValue& value, PromptLine& line) {
  value.read(line.request.prompt_token_ids);
  if (line.request.prompt_token_ids.empty()) value.reject("at least one token id");
}

void read_stop(const FieldValue& value, PromptLine& line) {
  std::vector<std::string>& stop = line.request.text.stop;
  if (!value.json().is_string()) return value.read(stop);
  stop = {value.json().get<std::string>()};
}

struct Field {
  std::string_view name;
  Reader read;
};

constexpr Field kFields[] = {
    {"id", read_id},
    {"prompt", read_prompt},
    {"messages", read_messages},
    {"prompt_token_ids", read_prompt_tokens},
    {"max_tokens", engine<&Request::max_tokens>},
    {"min_tokens", engine<&Request::min_tokens>},
    {"n", engine<&Request::n>},
    {"temperature", sampling<&SamplingParams::temperature>},
    {"top_p", sampling<&SamplingParams::top_p>},
    {"top_k", sampling<&SamplingParams::top_k>},
    {"min_p", sampling<&SamplingParams::min_p>},
    {"seed", sampling<&SamplingParams::seed>},
    {"repetition_penalty", sampling<&SamplingParams::repetition_penalty>},
    {"presence_penalty", sampling<&SamplingParams::presence_penalty>},
    {"frequency_penalty", sampling<&SamplingParams::frequency_penalty>},
    {"logit_bias", sampling<&SamplingParams::logit_bias>},
    {"allowed_token_ids", sampling<&SamplingParams::allowed_token_ids>},
    {"bad_words_token_ids", sampling<&SamplingParams::bad_words>},
    {"stop", read_stop},
    {"stop_token_ids", engine<&Request::stop_token_ids>},
    {"ignore_eos", engine<&Request::ignore_eos>},
    {"logprobs", sampling<&SamplingParams::logprobs>},
    {"prompt_logprobs", sampling<&SamplingParams::prompt_logprobs>},
    {"priority", engine<&Request::priority>},
    {"cache_salt", engine<&Request::cache_salt>},
};

Json parse_object(std::string_view text) {
  std::set<std::string> names;
  const auto once = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::key && depth == 1 &&
        !names.insert(value.get<std::string>()).second) {
      throw RequestError(400, value.get<std::string>(), "given twice");
    }
    return true;
  };
  Json object;
  try {
    object = Json::parse(text, once);
  } catch (const Json::exception& error) {
    throw RequestError(400, "not JSON",
                       text.find('{') != text.npos
                           ? error.what()
                           : "write {\"prompt\": \"...\"}, or use -f FILE for a plain text");
  }
  if (!object.is_object()) throw RequestError(400, "not an object", "write {\"prompt\": \"...\"}");
  return object;
}

void read_field(std::string_view name, const Json& value, PromptLine& line) {
  const auto* field = std::ranges::find(kFields, name, &Field::name);
  if (field == std::end(kFields)) {
    std::vector<std::string_view> known;
    for (const Field& f : kFields) known.push_back(f.name);
    throw RequestError(400, std::string(name),
                       fmt::format("unknown field; known fields: {}", fmt::join(known, ", ")));
  }
  if (!value.is_null()) field->read(FieldValue(name, value), line);
}

void require_one_prompt(const Json& object) {
  int given = 0;
  for (const char* name : {"prompt", "messages", "prompt_token_ids"})
    given += object.contains(name) && !object[name].is_null() ? 1 : 0;
  if (given != 1) {
    throw RequestError(400, "prompt",
                       "exactly one of prompt, messages and prompt_token_ids must be given");
  }
}

}  // namespace

nlohmann::ordered_json content_with_images(const std::string& text, size_t first, size_t count) {
  if (count == 0) return text;
  Json parts = Json::array();
  for (size_t i = first; i < first + count; ++i) parts.push_back(api::translated_image(i));
  parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

PromptLine parse_prompt_line(std::string_view text, const TextRequest& defaults) {
  PromptLine line{.id = {}, .request = defaults};
  line.request.prompt.clear();
  line.request.messages = nullptr;
  line.request.prompt_token_ids.clear();
  const Json object = parse_object(text);
  for (const auto& [name, value] : object.items()) read_field(name, value, line);
  require_one_prompt(object);
  return line;
}

std::vector<PromptLine> read_prompt_file(const std::string& path,
                                         const std::function<TextRequest()>& defaults) {
  const bool from_stdin = path == "-";
  const std::string name = from_stdin ? "stdin" : path;
  std::ifstream file;
  if (!from_stdin) file.open(path);
  std::istream& in = from_stdin ? std::cin : file;
  if (!in) throw SetupError(fmt::format("{}: cannot be read", name));
  std::vector<PromptLine> lines;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      lines.push_back(parse_prompt_line(text, defaults()));
    } catch (const RequestError& error) {
      throw SetupError(fmt::format("{}, line {}: {}", name, number, error.what()));
    }
  }
  if (in.bad() || lines.empty()) throw SetupError(fmt::format("{}: no prompts found", name));
  return lines;
}

void put_into_chat(TextRequest& request, const std::string& system) {
  if (!request.messages.is_null() || !request.prompt_token_ids.empty()) return;
  request.messages = Json::array();
  if (!system.empty()) request.messages.push_back({{"role", "system"}, {"content", system}});
  request.messages.push_back(
      {{"role", "user"},
       {"content", content_with_images(request.prompt, 0, request.images.size())}});
  request.prompt.clear();
}

}  // namespace octavo
