// octavo - the command line. Parses the arguments, runs one command and prints errors as one line.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "text/helper_jobs.h"

int main(int argc, char** argv) {
  // Not a command for people: a server starts helpers this way.
  if (argc == 2 && std::string_view(argv[1]) == octavo::kTextHelperCommand)
    return octavo::serve_helper_jobs();
  CLI::App app{
      "Octavo is a native LLM server with a paged KV cache.\n"
      "Quick start: octavo run MODEL, where MODEL is a .gguf file, a model folder, a model on the\n"
      "Hugging Face hub (ORG/NAME[:quantisation][@revision]) or an alias from octavo ls "
      "--aliases."};
  app.name("octavo");
  app.set_version_flag("--version", "octavo " OCTAVO_VERSION);
  app.require_subcommand(1);
  octavo::add_serve_command(app);
  octavo::add_generate_command(app);
  octavo::add_chat_command(app);
  octavo::add_info_command(app);
  octavo::add_pull_command(app);
  octavo::add_ls_command(app);
  octavo::add_rm_command(app);
  octavo::add_bench_command(app);
  octavo::add_doctor_command(app);
  try {
    octavo::init_logging();
    std::vector<std::string> arguments =
        octavo::with_config_file({argv + std::min(argc, 1), argv + argc});
    std::ranges::reverse(arguments);  // CLI11 expects the last argument first
    app.parse(std::move(arguments));
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const octavo::RequestError& error) {
    fmt::print(stderr, "octavo: {}\n", error.what());
    return 2;
  } catch (const octavo::SetupError& error) {
    fmt::print(stderr, "octavo: {}\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "octavo: unexpected error: {}\n", error.what());
    return 70;
  }
}
