// fixit coordinator, fixit worker, fixit profiler: the three programs under one name.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "coordinator/cli/command_context.h"
#include "core/base/child_process.h"

namespace fixit {
namespace {

void add_program(CLI::App& app, int& exit_code, const std::string& name, const std::string& what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->prefix_command();    // everything after the name, --help too, is the program's
  command->set_help_flag("");
  command->callback([command, name, &exit_code] {
    std::vector<std::string> words = {(own_program_folder() / ("fixit-" + name)).string()};
    for (const std::string& word : command->remaining()) words.push_back(word);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    std::fprintf(stderr, "fixit: cannot run %s: %s\n", words[0].c_str(), std::strerror(errno));
    exit_code = kExitFailure;
  });
}

}  // namespace

void add_program_commands(CLI::App& app, int& exit_code) {
  add_program(app, exit_code, "coordinator", "Run the coordinator (fixit-coordinator; see its --help)");
  add_program(app, exit_code, "worker", "Run a generator worker (fixit-worker; see its --help)");
  add_program(app, exit_code, "profiler", "Run a profiler (fixit-profiler; see its --help)");
}

}  // namespace fixit
