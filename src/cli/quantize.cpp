// octavo quantize - writes a quantised copy of a model.
#include <fmt/format.h>

#include <memory>

#include "base/units.h"
#include "cli/chat/interrupt.h"
#include "cli/commands.h"
#include "cli/model_by_name.h"
#include "cli/progress_bar.h"
#include "kernels/runtime/device.h"
#include "models/quantized/quantize_model.h"

namespace octavo {
namespace {

struct QuantizeFlags {
  std::string model;
  std::string out;
  QuantizeOptions options;
  std::string shard_size = "5GiB";
};

void run_quantize(QuantizeFlags flags) {
  flags.options.shard_bytes = parse_bytes(flags.shard_size, "--max-shard-size");
  const Checkpoint checkpoint = Checkpoint::open(find_model_by_name(flags.model).path);
  use_device(DeviceChoice::kCpu);
  QuantizedFiles files;
  {
    const InterruptScope interrupt;  // so that Ctrl-C leaves no partial folder
    ProgressBar bar("Quantising");
    files =
        quantize_model(checkpoint, flags.out, flags.options, [&](uint64_t done, uint64_t total) {
          if (interrupt.requested()) throw CLI::RuntimeError(130);
          bar.update(done, total);
        });
  }
  fmt::print("{}: {} of {}, {} matrices in {} bits, {} tensors not quantised\n", flags.out,
             format_bytes(files.bytes), format_bytes(checkpoint.file_bytes()), files.matrices,
             flags.options.bits, files.dense);
}

}  // namespace

void add_quantize_command(CLI::App& app) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App* command = app.add_subcommand(
      "quantize",
      "Write a quantised copy of a safetensors model in float32, float16 or bfloat16\n\n"
      "  octavo quantize ORG/NAME name-4bit             a quarter of the size of bfloat16\n"
      "  octavo quantize ORG/NAME name-8bit --bits 8    half the size, closest to the original\n"
      "  octavo run name-4bit\n\n"
      "The copy is a folder in MLX's format with the weights that mlx_lm.convert gives, so mlx-lm\n"
      "loads it too. Smaller groups are closer to the original and take more memory: 4 bits in\n"
      "groups of 64 are 4.5 bits per weight, in groups of 32 they are 5. Memory use does not grow\n"
      "with the model.");
  command->add_option("MODEL", flags->model, kModelHelp)->required();
  command->add_option("OUT", flags->out, "The new folder; it must not exist")->required();
  command->add_option("--bits", flags->options.bits, "Bits per weight")
      ->check(CLI::IsMember({4, 8}))
      ->capture_default_str();
  command
      ->add_option("--group-size", flags->options.group_size,
                   "Weights that share a scale and a bias")
      ->check(CLI::IsMember({32, 64, 128}))
      ->capture_default_str();
  command
      ->add_option("--max-shard-size", flags->shard_size,
                   "Size from which weights are split into several files")
      ->capture_default_str();
  command->callback([flags] { run_quantize(*flags); });
}

}  // namespace octavo
