// What does the program do when typed? Front door: zeroplan.
#include "tests/cli/run.hpp"

#include <sys/wait.h>

#include <chrono>
#include <cstdlib>

#include "tests/source_dir.hpp"
#include "tests/temporary_folder.hpp"

namespace zeroplan::tests {

Run shell(const std::string& command) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const std::string err = (folder.path() / "err").string();
  const std::string line =
      "cd '" + source_dir() + "' && { " + command + "\n} >'" + out + "' 2>'" + err + "'";
  const auto start = std::chrono::steady_clock::now();
  const int status = std::system(line.c_str());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .output = contents(out),
          .errors = contents(err),
          .seconds = elapsed.count()};
}

Run zeroplan(const std::string& arguments) {
  return shell("'" ZEROPLAN_BINARY "' " + arguments);
}

}  // namespace zeroplan::tests
