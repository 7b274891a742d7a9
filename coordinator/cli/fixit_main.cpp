// The `fixit` command.
#include <cstdio>

#include "coordinator/cli/command_context.h"

int main(int argc, char** argv) {
  using namespace fixit;
  watch_interruptions();
  CLI::App app("Fixit: sweeps of LLM-written kernels, and training data from their failures.\n"
               "Exit codes: 0 success, 1 a failure that is reported, 2 bad usage.",
               "fixit");
  app.set_version_flag("--version", std::string("fixit ") + FIXIT_VERSION);
  app.require_subcommand(1);
  int exit_code = kExitOk;
  add_launch_command(app, exit_code);
  add_status_command(app, exit_code);
  add_eval_command(app, exit_code);
  add_program_commands(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}
