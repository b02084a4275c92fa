// load_model() with the fake engine; the options are step_ms, max_num_seqs and pooling.
#include "api/fields/json_text.h"
#include "base/error.h"
#include "capi/loaded_model.h"
#include "support/fake_engine.h"

namespace octavo::capi {
namespace {

FakeEngineOptions options_of(const std::string& text) {
  const api::Json json = api::parse_object(text);
  return {.step_ms = json.value("step_ms", 0),
          .max_num_seqs = json.value("max_num_seqs", 8),
          .pooling = json.value("pooling", "")};
}

class FakeLoadedModel : public LoadedModel {
 public:
  explicit FakeLoadedModel(const FakeEngineOptions& options)
      : engine_(options), served_(engine_.served()) {}
  const api::ServedModel& served() const override { return served_; }

 private:
  FakeEngine engine_;
  api::ServedModel served_;
};

}  // namespace

std::unique_ptr<LoadedModel> load_model(const std::string& model, const std::string& options_json,
                                        LoadProgress progress) {
  if (model != "fake") throw SetupError(model + ": model not found");
  progress(1, 2);
  progress(2, 2);
  return std::make_unique<FakeLoadedModel>(options_of(options_json));
}

}  // namespace octavo::capi
