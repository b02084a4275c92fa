#include "hub/file_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "hub/gguf_file_name.h"

namespace octavo {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_in_root(std::string_view path) { return path.find('/') == std::string_view::npos; }

// Files for the config, the tokenizer, the chat template, images and the pooling of embedding models.
bool is_small_part(std::string_view path) {
  constexpr std::array kNames = {std::string_view("config.json"),
                                 std::string_view("generation_config.json"),
                                 std::string_view("preprocessor_config.json"),
                                 std::string_view("processor_config.json"),
                                 std::string_view("tokenizer.model"),
                                 std::string_view("special_tokens_map.json"),
                                 std::string_view("added_tokens.json"),
                                 std::string_view("vocab.json"),
                                 std::string_view("merges.txt"),
                                 std::string_view("modules.json"),
                                 std::string_view("config_sentence_transformers.json"),
                                 std::string_view("model.safetensors.index.json")};
  if (is_in_root(path)) {
    return std::ranges::find(kNames, path) != kNames.end() || path.starts_with("chat_template") ||
           (path.starts_with("tokenizer") && path.ends_with(".json"));
  }
  // "1_Pooling/config.json", "2_Dense/model.safetensors".
  const bool numbered = path.size() > 2 && path[0] >= '0' && path[0] <= '9' && path[1] == '_';
  return numbered && (path.ends_with("/config.json") || path.ends_with("/model.safetensors"));
}

bool is_weight(std::string_view path) {
  return is_in_root(path) && path.ends_with(".safetensors") && !path.starts_with("consolidated") &&
         !path.starts_with("adapter");
}

bool has(const std::vector<ModelFile>& files, std::string_view path) {
  return std::ranges::find(files, path, &ModelFile::path) != files.end();
}

void add_weight(FileChoice& choice, const ModelFile& file) {
  choice.files.push_back(file);
  choice.weight_bytes += file.size;
}

// Whether all shards exist, judging by names like "model-00001-of-00003.safetensors".
bool has_all_shards(const std::vector<ModelFile>& weights) {
  for (const ModelFile& file : weights) {
    const size_t of = file.path.find("-of-");
    if (of == std::string::npos) continue;
    const size_t count = std::strtoul(file.path.c_str() + of + 4, nullptr, 10);
    return count == weights.size();
  }
  return true;
}

std::optional<FileChoice> safetensors_choice(const std::vector<ModelFile>& files) {
  std::vector<ModelFile> weights;
  std::ranges::copy_if(files, std::back_inserter(weights),
                       [](const ModelFile& file) { return is_weight(file.path); });
  if (weights.empty()) return std::nullopt;
  const auto single = std::ranges::find(weights, "model.safetensors", &ModelFile::path);
  if (single != weights.end()) weights = {*single};
  FileChoice choice{.kind = "safetensors"};
  std::ranges::copy_if(files, std::back_inserter(choice.files), [&](const ModelFile& file) {
    // The loader prefers the single file to the index.
    const bool unused = weights.size() == 1 && file.path == "model.safetensors.index.json";
    return is_small_part(file.path) && !unused;
  });
  for (const ModelFile& weight : weights) add_weight(choice, weight);
  choice.is_complete = has(files, "config.json") && has_all_shards(weights);
  return choice;
}

FileChoice gguf_choice(const GgufModel& model) {
  FileChoice choice{.opened = model.files.front().path,
                    .kind = model.quantization.empty() ? "GGUF" : model.quantization + " GGUF",
                    .is_complete = model.is_complete()};
  for (const ModelFile& file : model.files) add_weight(choice, file);
  return choice;
}

bool matches(const GgufModel& model, const std::string& variant) {
  if (equal_ignoring_case(model.quantization, variant)) return true;
  return std::ranges::any_of(model.files, [&](const ModelFile& file) {
    const std::string_view name = std::string_view(file.path).substr(file.path.rfind('/') + 1);
    return file.path == variant || equal_ignoring_case(name, variant);
  });
}

std::string names_of(const std::vector<GgufModel>& models) {
  std::vector<std::string> names;
  for (const GgufModel& model : models)
    names.push_back(model.quantization.empty() ? model.files.front().path : model.quantization);
  return fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void fail_without_weights(const std::vector<ModelFile>& files,
                                       const std::string& repo) {
  const auto ends_with = [&](std::string_view ending) {
    return std::ranges::any_of(files,
                               [&](const ModelFile& file) { return file.path.ends_with(ending); });
  };
  const bool torch = ends_with(".bin") || ends_with(".pth") || ends_with(".pt");
  throw SetupError(fmt::format(
      "{}: {}; octavo loads safetensors and GGUF files: look for another repository of this model",
      repo, torch ? "has only pickled PyTorch weights" : "has no weights in a known format"));
}

}  // namespace

uint64_t FileChoice::bytes() const {
  uint64_t sum = 0;
  for (const ModelFile& file : files) sum += file.size;
  return sum;
}

FileChoice choose_files(const std::vector<ModelFile>& files, const std::string& variant,
                        const std::string& repo) {
  const std::vector<GgufModel> models = gguf_models(files);
  if (variant.empty()) {
    if (auto choice = safetensors_choice(files)) return *choice;
    if (models.empty()) fail_without_weights(files, repo);
  } else if (models.empty()) {
    throw SetupError(
        fmt::format("{}: has no GGUF files to choose from; leave out \":{}\"", repo, variant));
  }
  const GgufModel* best = nullptr;
  const GgufModel* refused = nullptr;
  for (const GgufModel& model : models) {
    if (!variant.empty() && !matches(model, variant)) continue;
    const int rank = quantization_rank(model.quantization);
    if (rank < 0) {
      refused = &model;
    } else if (best == nullptr || rank < quantization_rank(best->quantization)) {
      best = &model;
    }
  }
  if (best != nullptr) return gguf_choice(*best);
  if (refused != nullptr) {
    throw SetupError(fmt::format("{}: octavo cannot load {} weights, only {}; there are {}", repo,
                                 refused->quantization, kLoadableTypes, names_of(models)));
  }
  throw SetupError(
      fmt::format("{}: there is no \"{}\"; there are {}", repo, variant, names_of(models)));
}

std::vector<FileChoice> all_choices(const std::vector<ModelFile>& files) {
  std::vector<FileChoice> choices;
  if (auto choice = safetensors_choice(files)) choices.push_back(*choice);
  for (const GgufModel& model : gguf_models(files)) choices.push_back(gguf_choice(model));
  return choices;
}

}  // namespace octavo
