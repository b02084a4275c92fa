// served_model.h - a loaded model as the server sees it.
#pragma once

#include "cli/serve_flags.h"
#include "server/served_model.h"

namespace octavo {

// `llm` must outlive it.
server::ServedModel make_served_model(Llm& llm, const ServeFlags& flags,
                                      const EngineOptions& options);

}  // namespace octavo
