#include "validator/launch/spawn.hpp"

#include <signal.h>

#include <fstream>

#include "gpu_probe/environment_error.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"
#include "validator/rendezvous/socket.hpp"

using namespace zeroplan;
using namespace std::chrono_literals;

namespace {

int run(const std::string& script, std::int64_t ranks, std::chrono::milliseconds limit = 60s) {
  return spawn_ranks({.command = {"/bin/sh", "-c", script}, .ranks = ranks, .limit = limit});
}

std::string complaint(const std::string& script, std::chrono::milliseconds limit = 60s) {
  try {
    run(script, 3, limit);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "no complaint";
}

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

TEST_CASE("each rank knows who it is, where rank 0 is, and the job's nonce") {
  const TemporaryFolder folder;
  const std::string to = folder.write("rank", "");
  REQUIRE(run("echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR > " + to +
                  "$RANK; echo $ZEROPLAN_PORT $ZEROPLAN_NONCE > " + to + ".job$RANK",
              3) == 0);
  CHECK(line_of(to + "0") == "0 3 0 3 127.0.0.1");
  CHECK(line_of(to + "2") == "2 3 2 3 127.0.0.1");
  CHECK(line_of(to + ".job0").size() > 17);
  CHECK(line_of(to + ".job0") == line_of(to + ".job2"));
}

TEST_CASE("the first rank that fails ends the job with its code, and leaves nobody behind") {
  const TemporaryFolder folder;
  const std::string to = folder.write("process", "");
  const Deadline begin = Clock::now();
  // The others write who they are, will not hear SIGTERM, and would sleep for long.
  CHECK(run("trap '' TERM; echo $$ > " + to + "$RANK; if [ $RANK = 1 ]; then while [ ! -s " + to +
                "0 ] || [ ! -s " + to + "2 ]; do sleep 0.05; done; exit 3; fi; exec sleep 300",
            3) == 3);
  CHECK(Clock::now() - begin < 60s);
  for (const char* rank : {"0", "2"}) {
    const int process = std::stoi(line_of(to + rank));
    CHECK(kill(process, 0) == -1);
  }
}

TEST_CASE("a rank that is killed, hangs or cannot start is a message") {
  CHECK_THAT(complaint("[ $RANK = 2 ] && kill -9 $$; exec sleep 300"),
             ContainsSubstring("rank 2 is lost: ended by signal 9"));
  CHECK_THAT(complaint("exec sleep 300", 100ms),
             ContainsSubstring("did not end within 0.1 s; all were stopped"));
  CHECK_THROWS_AS(spawn_ranks({.command = {"/no/such/program"}, .ranks = 2, .limit = 1000ms}),
                  EnvironmentError);
}
