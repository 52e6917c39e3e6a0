#include "cli/cli.h"

namespace topotune::cli {

void add_version(CLI::App& app, Globals& globals, int& status) {
  app.add_subcommand("version", "print the version")->callback([&globals, &status] {
    status = write_result(globals, std::string("topotune ") + TOPOTUNE_VERSION + "\n");
  });
}

}  // namespace topotune::cli
