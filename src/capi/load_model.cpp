// load_model() from files.
#include <spdlog/spdlog.h>

#include "base/compute_pool.h"
#include "capi/engine_settings.h"
#include "capi/loaded_model.h"
#include "hub/find_model.h"
#include "llm/llm.h"
#include "models/config_file.h"
#include "models/config_keys.h"

namespace octavo::capi {
namespace {

class ModelOfFiles : public LoadedModel {
 public:
  ModelOfFiles(const EngineSettings& settings, const EngineOptions& options, LoadProgress progress)
      : llm_(settings.model.model, options, std::move(progress), settings.model.chat_template),
        served_(make_served_model(llm_, settings.model, options, settings.serving)) {}

  const api::ServedModel& served() const override { return served_; }

 private:
  Llm llm_;
  api::ServedModel served_;
};

// Reports downloaded bytes as progress; other messages go to the log.
HubOptions hub_options(const ModelSettings& settings, const LoadProgress& progress) {
  HubOptions options;
  options.memory_fraction = settings.memory_fraction;
  options.say = [](const std::string& text) { spdlog::info(text); };
  const UnknownKeys unknown = settings.strict_config ? UnknownKeys::kRefuse : UnknownKeys::kWarn;
  options.check_config = [unknown](const auto& config_json) {
    plan_config_file(read_config_file(config_json), unknown);
  };
  options.on_download = [&progress](uint64_t done, uint64_t total, bool) {
    if (progress) progress(done, total);
    return true;
  };
  return options;
}

}  // namespace

std::unique_ptr<LoadedModel> load_model(const std::string& model, const std::string& options_json,
                                        LoadProgress progress) {
  EngineSettings settings = read_engine_settings(model, options_json);
  const HubOptions hub = hub_options(settings.model, progress);
  const FoundModel found = find_model(model, hub);
  if (found.place != kPathPlace) settings.model.name = model;
  settings.model.model = found.path;
  EngineOptions options = settings.model.engine_options();
  if (!options.speculation.model.empty())
    options.speculation.model = find_model(options.speculation.model, hub).path;
  options.pooling = settings.pooling.options();
  options.model_context = settings.pooling.model_context();
  set_compute_options(settings.model.compute_options());
  return std::make_unique<ModelOfFiles>(settings, options, std::move(progress));
}

}  // namespace octavo::capi
