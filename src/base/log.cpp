#include "base/log.h"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "base/log_text.h"
#include "base/stderr_sink.h"

namespace octavo {
namespace {

std::atomic<LogFormat> format_of_log = LogFormat::kText;

spdlog::level::level_enum level_or(spdlog::level::level_enum fallback) {
  const char* level = std::getenv("OCTAVO_LOG");
  return level != nullptr ? spdlog::level::from_str(level) : fallback;
}

// Whether `text` can be written as a JSON number without loss of precision.
bool is_count(std::string_view text) {
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  return digits && !text.empty() && text.size() < 16 && (text == "0" || text.front() != '0');
}

// Other values are quoted in text logs.
bool is_one_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \"") == std::string_view::npos &&
         is_clean_log_text(text);
}

// %* in a pattern: the message as JSON. Messages from log_event() are already JSON.
class JsonMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view payload(message.payload.data(), message.payload.size());
    std::string text;
    if (payload.starts_with('\x01')) {
      text = payload.substr(1);
    } else {
      append_log_quoted(text, payload);
    }
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

// %* in a pattern: the message as text on one line.
class TextMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view payload(message.payload.data(), message.payload.size());
    if (is_clean_log_text(payload)) {
      out.append(payload.data(), payload.data() + payload.size());
      return;
    }
    std::string text;
    append_log_text(text, payload);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<TextMessage>();
  }
};

// Terminals get colours.
spdlog::sink_ptr make_server_sink() {
  if (::isatty(STDERR_FILENO) != 0) return std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  // The pool ends its thread, which calls the sink, before it is destroyed.
  auto* const pool = spdlog::thread_pool().get();
  const auto overruns = [pool] { return static_cast<uint64_t>(pool->overrun_counter()); };
  return std::make_shared<StderrSink>(STDERR_FILENO, StderrSinkOptions{.lost_before = overruns});
}

}  // namespace

void init_logging() {
  auto logger = spdlog::stderr_color_mt("octavo");
  logger->set_pattern("%^%l%$ %v");
  logger->set_level(level_or(spdlog::level::warn));
  spdlog::set_default_logger(std::move(logger));
}

void init_server_logging(LogFormat format) {
  constexpr size_t kQueuedLines = 8192;
  format_of_log = format;
  spdlog::init_thread_pool(kQueuedLines, 1);
  auto logger = std::make_shared<spdlog::async_logger>(
      "octavo-server", make_server_sink(), spdlog::thread_pool(),
      spdlog::async_overflow_policy::overrun_oldest);
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (format == LogFormat::kJson) {
    formatter->add_flag<JsonMessage>('*');
    formatter->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%*})");
  } else {
    formatter->add_flag<TextMessage>('*');
    formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %*");
  }
  logger->set_formatter(std::move(formatter));
  logger->set_level(level_or(spdlog::level::info));
  spdlog::set_default_logger(std::move(logger));
  spdlog::flush_every(std::chrono::seconds(1));
}

void flush_logging() {
  if (const auto logger = spdlog::default_logger()) {
    for (const spdlog::sink_ptr& sink : logger->sinks())
      if (auto* bounded = dynamic_cast<StderrSink*>(sink.get())) bounded->hurry();
  }
  spdlog::shutdown();
}

void log_event(spdlog::level::level_enum level, std::string_view message, const LogFields& fields) {
  if (!spdlog::should_log(level)) return;
  std::string line;
  if (format_of_log == LogFormat::kJson) {
    line = '\x01';
    append_log_quoted(line, message);
    for (const auto& [name, value] : fields) {
      line += ',';
      append_log_quoted(line, name);
      line += ':';
      if (is_count(value)) {
        line += value;
      } else {
        append_log_quoted(line, value);
      }
    }
  } else {
    line = message;
    for (const auto& [name, value] : fields) {
      line += ' ' + name + '=';
      if (is_one_word(value)) {
        line += value;
      } else {
        append_log_quoted(line, value);
      }
    }
  }
  spdlog::log(level, "{}", line);
}

}  // namespace octavo
