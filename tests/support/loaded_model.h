// loaded_model.h - a checkpoint and its model, for test programs that drive steps themselves.
#pragma once

#include <exception>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "models/decoder_model.h"
#include "models/model_description.h"

namespace octavo {

struct LoadedModel {
  // `dtype`: "auto" uses the checkpoint's dtype. `mtp`: with the multi-token prediction layer.
  LoadedModel(const std::string& path, const std::string& dtype, bool mtp = false)
      : checkpoint(Checkpoint::open(path)),
        description(describe_model(
            checkpoint,
            dtype == "auto" ? std::nullopt : std::optional(parse_dtype(dtype, "--dtype")),
            std::nullopt, UnknownKeys::kWarn, mtp)),
        source(checkpoint, nullptr),
        model(description.plan, description.dtype, source) {}

  Checkpoint checkpoint;
  ModelDescription description;
  WeightSource source;
  DecoderModel model;
};

// Parses the arguments and runs; returns status 2 for an exception.
inline int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& run) {
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}

}  // namespace octavo
