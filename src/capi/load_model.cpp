// load_model() from files.
#include "base/compute_pool.h"
#include "capi/engine_settings.h"
#include "capi/loaded_model.h"
#include "llm/llm.h"

namespace octavo::capi {
namespace {

class ModelOfFiles : public LoadedModel {
 public:
  ModelOfFiles(const EngineSettings& settings, const EngineOptions& options, LoadProgress progress)
      : llm_(settings.model.model, options, std::move(progress)),
        served_(make_served_model(llm_, settings.model, options, settings.serving)) {}

  const server::ServedModel& served() const override { return served_; }

 private:
  Llm llm_;
  server::ServedModel served_;
};

}  // namespace

std::unique_ptr<LoadedModel> load_model(const std::string& model, const std::string& options_json,
                                        LoadProgress progress) {
  const EngineSettings settings = read_engine_settings(model, options_json);
  EngineOptions options = settings.model.engine_options();
  options.pooling = settings.pooling.options();
  set_compute_options(settings.model.compute_options());
  return std::make_unique<ModelOfFiles>(settings, options, std::move(progress));
}

}  // namespace octavo::capi
