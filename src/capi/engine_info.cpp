#include "capi/engine_info.h"

namespace octavo::capi {

api::Json engine_info(const api::ServedModel& model) {
  const EngineStats stats = model.engine.stats();
  api::Json memory = api::Json::object();
  for (const api::MemoryRow& row : model.memory) memory[row.name] = row.bytes;
  return {{"version", OCTAVO_VERSION},
          {"model", model.name()},
          {"root", model.root},
          {"max_model_len", model.max_model_len},
          {"vocab_size", model.vocab},
          {"max_num_seqs", model.max_num_seqs},
          {"block_size", model.block_tokens},
          {"can_chat", model.text.chat_template != nullptr},
          {"pooling", model.pooling.has_value()},
          {"hidden_size", model.hidden},
          {"system_fingerprint", model.fingerprint},
          {"memory", std::move(memory)},
          {"running", stats.scheduler.running},
          {"waiting", stats.scheduler.waiting}};
}

}  // namespace octavo::capi
