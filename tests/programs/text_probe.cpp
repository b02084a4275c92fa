// text_probe - the text layer for the Python tests: reads one JSON request per line, writes one
// JSON answer per line.
//
//   {"op":"load","file":path}                        reads a tokenizer.json
//   {"op":"load_gguf","vocab":{...}}                 creates a tokenizer from GGUF values
//   {"op":"load_model","file":path}                  reads the tokenizer of a GGUF file  ->
//   {"vocab_size":n, "stop_tokens":[...], "templates":{"default":..., "tool_use":...}}
//   {"op":"pre_tokenizers"}                          -> {"names":[...], "raw":[...]}
//   {"op":"encode","bytes":hex,"add_special":bool}   -> {"ids":[...]}
//   {"op":"encode_pair","first":hex,"second":hex,"max_tokens":n}  -> {"ids":[...], "second_text":n}
//   {"op":"decode","ids":[...],"skip_special":bool}  -> {"text":..., "streamed":..., "deltas":n}
//   {"op":"render","template":..., "messages":[...], "options":{...}, "tokens":{...}}  ->
//   {"text":...}; with "size_only":true  -> {"bytes":n}, without copies of a long text
// An error is {"error":message,"kind":"setup"|"request"}.
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "llm/load_model_text.h"
#include "models/gguf_stop_tokens.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/gguf_pre_tokenizer.h"
#include "text/gguf_vocab.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

GgufVocab vocab_from(const ordered_json& json) {
  GgufVocab vocab;
  vocab.model = json.at("model");
  vocab.pre = json.value("pre", "");
  vocab.tokens = json.at("tokens").get<std::vector<std::string>>();
  vocab.scores = json.value("scores", std::vector<float>());
  vocab.types = json.value("types", std::vector<int32_t>());
  vocab.merges = json.value("merges", std::vector<std::string>());
  vocab.bos = json.value("bos", -1);
  vocab.eos = json.value("eos", -1);
  vocab.unk = json.value("unk", -1);
  vocab.pad = json.value("pad", -1);
  const auto flag = [&](const char* name) {
    return json.contains(name) ? std::optional(json.at(name).get<bool>()) : std::nullopt;
  };
  vocab.add_bos = flag("add_bos");
  vocab.add_eos = flag("add_eos");
  vocab.add_space_prefix = flag("add_space_prefix");
  return vocab;
}

class Probe {
 public:
  ordered_json answer(const ordered_json& request) {
    const std::string op = request.at("op");
    if (op == "load") return load(Tokenizer::from_file(request.at("file").get<std::string>()));
    if (op == "load_gguf") {
      return load(Tokenizer::from_json(tokenizer_json_from_gguf(vocab_from(request.at("vocab")))));
    }
    if (op == "load_model") return load_model(request.at("file").get<std::string>());
    if (op == "pre_tokenizers") return pre_tokenizers();
    if (op == "encode") {
      return {
          {"ids", tokenizer_->encode(from_hex(request.at("bytes")), request.at("add_special"))}};
    }
    if (op == "encode_pair") return encode_pair(request);
    if (op == "decode") return decode(request);
    if (op == "render") return render(request);
    return {{"error", "unknown op " + op}, {"kind", "probe"}};
  }

 private:
  ordered_json load(std::shared_ptr<const Tokenizer> tokenizer) {
    tokenizer_ = std::move(tokenizer);
    return {{"vocab_size", tokenizer_->vocab_size()}};
  }

  ordered_json load_model(const std::string& file) {
    const Checkpoint checkpoint = Checkpoint::open(file);
    const ModelText text = load_model_text(checkpoint);
    ordered_json found = load(text.tokenizer);
    found["stop_tokens"] = gguf_stop_tokens(*checkpoint.gguf());
    found["templates"] = ordered_json::object();
    if (text.chat_template) {
      const ChatTemplateSource& source = text.chat_template->source();
      found["templates"]["default"] = source.source;
      if (source.tool_use_source) found["templates"]["tool_use"] = *source.tool_use_source;
    }
    return found;
  }

  static ordered_json pre_tokenizers() {
    ordered_json found = {{"names", ordered_json::array()}, {"raw", ordered_json::array()}};
    for (const std::string_view name : gguf_pre_tokenizer_names())
      found[gguf_pre_tokenizer(name).is_raw ? "raw" : "names"].push_back(name);
    return found;
  }

  ordered_json encode_pair(const ordered_json& request) const {
    const Tokenizer::Pair pair =
        tokenizer_->encode_pair(from_hex(request.at("first")), from_hex(request.at("second")),
                                request.at("max_tokens").get<size_t>());
    return {{"ids", pair.tokens}, {"second_text", pair.second_text}};
  }

  ordered_json decode(const ordered_json& request) const {
    const auto ids = request.at("ids").get<std::vector<TokenId>>();
    const bool skip = request.at("skip_special");
    Detokenizer detokenizer(tokenizer_, skip);
    std::string streamed;
    int deltas = 0;
    for (const TokenId id : ids) {
      const std::string delta = detokenizer.push(id);
      // JSON cannot represent an incomplete character, so report it here.
      if (!is_valid_utf8(delta)) return {{"error", "a delta is not UTF-8"}, {"kind", "probe"}};
      deltas += delta.empty() ? 0 : 1;
      streamed += delta;
    }
    streamed += detokenizer.finish();
    return {{"text", tokenizer_->decode(ids, skip)}, {"streamed", streamed}, {"deltas", deltas}};
  }

  ordered_json render(const ordered_json& request) {
    const std::string source = request.at("template");
    const ordered_json tokens = request.value("tokens", ordered_json::object());
    auto& chat_template = templates_[source + tokens.dump()];
    if (!chat_template) {
      chat_template = ChatTemplate::from_source({.source = source,
                                                 .tool_use_source = std::nullopt,
                                                 .bos_token = tokens.value("bos_token", ""),
                                                 .eos_token = tokens.value("eos_token", ""),
                                                 .unk_token = tokens.value("unk_token", ""),
                                                 .pad_token = tokens.value("pad_token", "")});
    }
    const ordered_json given = request.value("options", ordered_json::object());
    RenderOptions options;
    options.tools = given.value("tools", ordered_json());
    options.documents = given.value("documents", ordered_json());
    if (given.contains("enable_thinking")) options.enable_thinking = given.at("enable_thinking");
    options.add_generation_prompt = given.value("add_generation_prompt", false);
    options.continue_final_message = given.value("continue_final_message", false);
    options.extra = given.value("extra", ordered_json());
    std::string text = chat_template->render(request.at("messages"), options);
    if (request.value("size_only", false)) return {{"bytes", text.size()}};
    return {{"text", std::move(text)}};
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates_;
};

ordered_json guarded_answer(Probe& probe, const std::string& line) {
  try {
    return probe.answer(ordered_json::parse(line));
  } catch (const SetupError& error) {
    return {{"error", error.what()}, {"kind", "setup"}};
  } catch (const RequestError& error) {
    return {{"error", error.what()}, {"kind", "request"}, {"param", error.param()}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}, {"kind", "probe"}};
  }
}

}  // namespace
}  // namespace octavo

int main() {
  octavo::init_logging();  // to stderr: stdout is for answers
  std::ios::sync_with_stdio(false);
  octavo::Probe probe;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << octavo::guarded_answer(probe, line).dump() << '\n' << std::flush;
  }
}
