#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>

namespace octavo {

void init_logging() {
  auto logger = spdlog::stderr_color_mt("octavo");
  logger->set_pattern("%^%l%$ %v");
  const char* level = std::getenv("OCTAVO_LOG");
  logger->set_level(level != nullptr ? spdlog::level::from_str(level) : spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace octavo
