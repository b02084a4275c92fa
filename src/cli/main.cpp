// octavo - the command line. Parses the arguments, runs one command and prints errors as one line.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/log_text.h"
#include "base/standard_streams.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/parse/foreign_environment.h"
#include "cli/parse/parse_error.h"
#include "cli/parse/translate_arguments.h"
#include "cli/parse/usage_error.h"
#include "cli/source_commit.h"
#include "kernels/arithmetic.h"
#include "text/helper_jobs.h"

extern char** environ;  // of POSIX; macOS has no header that declares it

namespace {

// Errors quote text from files and servers. Without control characters it cannot command a terminal.
void print_error(std::string_view kind, std::string_view text) {
  std::string clean;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    octavo::append_log_text(clean, text.substr(0, end));
    clean += '\n';
    text.remove_prefix(end + 1);
  }
  octavo::append_log_text(clean, text);
  fmt::print(stderr, "octavo: {}{}\n", kind, clean);
}

void say(const std::string& text) { fmt::print(stderr, "octavo: {}\n", text); }

// Only commands that plan memory have flags for what vllm-metal's variables set.
void warn_of_environment(const CLI::App& command) {
  if (command.get_option_no_throw("--memory-fraction") == nullptr) return;
  if (const auto note = octavo::foreign_environment_note(environ)) say(*note);
}

}  // namespace

int main(int argc, char** argv) {
  octavo::open_closed_standard_streams();
  // Not a command for people: a server starts helpers this way.
  if (argc == 2 && std::string_view(argv[1]) == octavo::kTextHelperCommand)
    return octavo::serve_helper_jobs();
  CLI::App app{
      "Octavo is a native LLM server with a paged KV cache.\n"
      "Quick start: octavo run MODEL, where MODEL is a .gguf file, a model folder, a model on the\n"
      "Hugging Face hub (ORG/NAME[:quantisation][@revision]) or an alias from octavo ls "
      "--aliases."};
  app.name("octavo");
  app.set_version_flag("--version",
                       fmt::format("octavo {} (commit {}, arithmetic {})", OCTAVO_VERSION,
                                   octavo::source_commit(), octavo::kArithmeticVersion));
  app.require_subcommand(1);
  octavo::add_serve_command(app);
  octavo::add_generate_command(app);
  octavo::add_chat_command(app);
  octavo::add_info_command(app);
  octavo::add_pull_command(app);
  octavo::add_ls_command(app);
  octavo::add_rm_command(app);
  octavo::add_ps_command(app);
  octavo::add_stop_command(app);
  octavo::add_top_command(app);
  octavo::add_quantize_command(app);
  octavo::add_launch_command(app);
  octavo::add_worker_command(app);
  octavo::add_bench_command(app);
  octavo::add_doctor_command(app);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.empty()) arguments.emplace_back("--help");
  try {
    octavo::init_logging();
    arguments =
        octavo::translate_arguments(app, octavo::with_config_file(std::move(arguments)), say);
    warn_of_environment(octavo::selected_command(app, arguments));
    // CLI11 expects the last argument first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return 0;
  } catch (const CLI::ParseError& error) {
    // --help, --version, and commands that have already printed their error.
    if (error.get_exit_code() == 0 || dynamic_cast<const CLI::RuntimeError*>(&error) != nullptr)
      return app.exit(error);
    fmt::print(stderr, "{}\n", octavo::explain_parse_error(app, error, arguments));
    return octavo::kUsageStatus;
  } catch (const octavo::UsageError& error) {
    fmt::print(stderr, "octavo: {}\n", error.what());
    return octavo::kUsageStatus;
  } catch (const octavo::RequestError& error) {
    print_error("", error.what());
    return 2;
  } catch (const octavo::SetupError& error) {
    print_error("", error.what());
    return 1;
  } catch (const std::exception& error) {
    print_error("unexpected error: ", error.what());
    return 70;
  }
}
