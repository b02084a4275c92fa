#include "models/quantized/quantize_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/units.h"
#include "kernels/runtime/device_buffer.h"
#include "models/config.h"
#include "models/quantized/quantize_plan.h"
#include "models/weight_view.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockElements = 16 << 20;  // quantised at once

// Next to the final folder, and removed unless it is renamed.
class PartialFolder {
 public:
  explicit PartialFolder(const fs::path& out) : out_(out) {
    path_ = out.parent_path() / fmt::format(".{}.{}.partial", out.filename().string(), getpid());
    std::error_code error;
    if (!fs::create_directory(path_, error))
      throw SetupError(fmt::format("{}: cannot be created: {}", path_.string(),
                                   error ? error.message() : "it exists"));
  }
  ~PartialFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const fs::path& path() const { return path_; }

  void finish() {
    std::error_code error;
    fs::rename(path_, out_, error);
    if (error)
      throw SetupError(fmt::format("{}: cannot be created: {}", out_.string(), error.message()));
    path_.clear();
  }

 private:
  fs::path out_;
  fs::path path_;
};

// Rows [first, first + count) of a source in the type of the conversion.
mx::array rows_of(const TensorConversion& conversion, const TensorView& source, int64_t first,
                  int64_t count) {
  const DType from = expect_float(source);
  const DType to = conversion.type == TensorType::F32   ? DType::kFloat32
                   : conversion.type == TensorType::F16 ? DType::kFloat16
                                                        : DType::kBFloat16;
  mx::array rows = make_device_buffer(
      {static_cast<int>(count), static_cast<int>(conversion.cols())}, mlx_dtype(from));
  const auto row_bytes = static_cast<size_t>(conversion.cols()) * size_of(from);
  std::memcpy(rows.data<std::byte>(), source.bytes.data() + static_cast<size_t>(first) * row_bytes,
              static_cast<size_t>(count) * row_bytes);
  return mx::astype(rows, mlx_dtype(to), mx::Device::cpu);
}

// Writes a conversion as tensors `index` and the following of its file, some rows at a time.
class TensorConverter {
 public:
  TensorConverter(const TensorConversion& conversion, SafetensorsWriter& writer, size_t index)
      : conversion_(conversion), writer_(writer), index_(index) {}

  // The next of its sources.
  void convert(const TensorView& source) {
    const int64_t cols = conversion_.cols();
    const auto row_bytes = cols * static_cast<int64_t>(size_of(expect_float(source)));
    const int64_t rows =
        static_cast<int64_t>(source.bytes.size()) / std::max<int64_t>(row_bytes, 1);
    const int64_t step = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(cols, 1));
    for (int64_t first = 0; first < rows; first += step)
      convert_rows(rows_of(conversion_, source, first, std::min(step, rows - first)));
  }

 private:
  void convert_rows(const mx::array& rows) {
    std::vector<mx::array> parts = {rows};
    if (conversion_.bits > 0)
      parts = mx::quantize(rows, conversion_.group_size, conversion_.bits, "affine", std::nullopt,
                           mx::Device::cpu);
    mx::eval(parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      const size_t bytes = parts[i].nbytes();
      writer_.write(index_ + i, written_.at(i), {parts[i].data<std::byte>(), bytes});
      written_.at(i) += bytes;
    }
  }

  const TensorConversion& conversion_;
  SafetensorsWriter& writer_;
  size_t index_;
  std::array<uint64_t, 3> written_{};  // of each output
};

struct Shard {
  std::vector<const TensorConversion*> conversions;
  uint64_t bytes = 0;
};

uint64_t output_bytes(const TensorConversion& conversion) {
  uint64_t bytes = 0;
  for (const SafetensorsTensor& tensor : conversion.outputs()) bytes += tensor.bytes();
  return bytes;
}

std::vector<Shard> make_shards(const std::vector<TensorConversion>& conversions,
                               uint64_t most_bytes) {
  std::vector<Shard> shards(1);
  for (const TensorConversion& conversion : conversions) {
    const uint64_t bytes = output_bytes(conversion);
    if (shards.back().bytes > 0 && shards.back().bytes + bytes > most_bytes) shards.emplace_back();
    shards.back().conversions.push_back(&conversion);
    shards.back().bytes += bytes;
  }
  return shards;
}

void write_json(const fs::path& path, const nlohmann::json& json) {
  std::ofstream file(path);
  file << json.dump(4) << "\n";
  file.close();
  if (!file) throw SetupError(fmt::format("{}: cannot be written", path.string()));
}

// Writes the weight files and their index.
class ShardWriter {
 public:
  ShardWriter(const Checkpoint& checkpoint, const fs::path& folder,
              const std::function<void(uint64_t, uint64_t)>& progress)
      : checkpoint_(checkpoint), folder_(folder), progress_(progress) {}

  void write(const std::vector<Shard>& shards) {
    uint64_t total = 0;
    for (const Shard& shard : shards) {
      total += shard.bytes;
      for (const TensorConversion* each : shard.conversions)
        to_read_ += each->sources.size() * each->sources.front()->bytes.size();
    }
    for (size_t i = 0; i < shards.size(); ++i) {
      write_shard(shards[i], shards.size() == 1 ? "model.safetensors"
                                                : fmt::format("model-{:05}-of-{:05}.safetensors",
                                                              i + 1, shards.size()));
    }
    write_json(folder_ / "model.safetensors.index.json",
               {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map_}});
  }

 private:
  void write_shard(const Shard& shard, const std::string& name) {
    std::vector<SafetensorsTensor> tensors;
    for (const TensorConversion* each : shard.conversions)
      for (SafetensorsTensor& tensor : each->outputs()) tensors.push_back(std::move(tensor));
    SafetensorsWriter writer(folder_ / name, tensors);
    size_t index = 0;
    for (const TensorConversion* each : shard.conversions) {
      TensorConverter converter(*each, writer, index);
      for (const TensorView* source : each->sources) {
        converter.convert(*source);
        checkpoint_.release(*source);
        read_ += source->bytes.size();
        if (progress_) progress_(read_, to_read_);
      }
      index += each->outputs().size();
    }
    writer.finish();
    for (const SafetensorsTensor& tensor : tensors) weight_map_[tensor.name] = name;
  }

  const Checkpoint& checkpoint_;
  const fs::path& folder_;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  nlohmann::json weight_map_ = nlohmann::json::object();
  uint64_t read_ = 0;
  uint64_t to_read_ = 0;
};

void write_config(const Checkpoint& checkpoint, const std::vector<TensorConversion>& conversions,
                  const QuantizeOptions& options, const fs::path& folder) {
  nlohmann::json config = read_json(checkpoint.folder() / "config.json");
  nlohmann::json section = {
      {"group_size", options.group_size}, {"bits", options.bits}, {"mode", "affine"}};
  for (const TensorConversion& each : conversions) {
    if (each.differs)
      section[each.module()] = {{"group_size", each.group_size}, {"bits", each.bits}};
  }
  config.erase("_name_or_path");
  config["quantization"] = section;
  config["quantization_config"] = section;
  write_json(folder / "config.json", config);
}

// Tokenizer, chat template, sampling defaults, and what makes a model an embedding model.
void copy_other_files(const fs::path& from, const fs::path& to) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
        "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja",
        "chat_template.json", "additional_chat_templates", "generation_config.json", "modules.json",
        "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling",
        "2_Normalize"}) {
    std::error_code error;
    if (!fs::exists(from / name, error)) continue;
    fs::copy(from / name, to / name, fs::copy_options::recursive, error);
    if (error)
      throw SetupError(
          fmt::format("{}: cannot be copied: {}", (from / name).string(), error.message()));
  }
}

void expect_space(const fs::path& folder, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < bytes)
    throw SetupError(fmt::format("{}: {} are needed, {} are free", folder.string(),
                                 format_bytes(bytes), format_bytes(space.available)));
}

}  // namespace

QuantizedFiles quantize_model(const Checkpoint& checkpoint, const fs::path& out,
                              const QuantizeOptions& options,
                              const std::function<void(uint64_t done, uint64_t total)>& progress) {
  fs::path target = fs::absolute(out).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (fs::exists(fs::symlink_status(target)))
    throw SetupError(fmt::format("{}: exists; choose a new folder", out.string()));
  const std::vector<TensorConversion> conversions = plan_conversions(checkpoint, options);
  const std::vector<Shard> shards = make_shards(conversions, options.shard_bytes);
  QuantizedFiles files;
  for (const Shard& shard : shards) files.bytes += shard.bytes;
  for (const TensorConversion& each : conversions) ++(each.bits > 0 ? files.matrices : files.dense);
  PartialFolder folder(target);
  expect_space(folder.path(), files.bytes);
  ShardWriter(checkpoint, folder.path(), progress).write(shards);
  write_config(checkpoint, conversions, options, folder.path());
  copy_other_files(checkpoint.folder(), folder.path());
  folder.finish();
  return files;
}

}  // namespace octavo
