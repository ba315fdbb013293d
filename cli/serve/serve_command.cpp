// zeroplan serve: the page of an answer, live. Front door: run_serve.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/serve/server.hpp"

namespace zeroplan {

ExitCode run_serve(const ServeArguments& arguments) {
  serve(arguments, [&](std::int64_t port) {
    const bool address = arguments.host.find(':') != std::string::npos;
    fmt::print(stderr, "zeroplan: http://{}:{}/ until Ctrl-C\n",
               address ? "[" + arguments.host + "]" : arguments.host, port);
  });
  return ExitCode::yes;
}

}  // namespace zeroplan
