#include "validator/launch/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
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

// While it lives, the signal does this.
class Handled {
 public:
  Handled(int signal, void (*handler)(int)) : signal_(signal), before_(::signal(signal, handler)) {}
  Handled(const Handled&) = delete;
  Handled& operator=(const Handled&) = delete;
  ~Handled() { ::signal(signal_, before_); }

 private:
  int signal_;
  void (*before_)(int);
};

// While it lives, PATH names so many folders without programs that a search takes long.
class LongPath {
 public:
  LongPath() {
    std::string path;
    for (int i = 0; i < 50'000; ++i) path += "x:";
    setenv("PATH", path.c_str(), 1);
  }
  LongPath(const LongPath&) = delete;
  LongPath& operator=(const LongPath&) = delete;
  ~LongPath() { setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_ = getenv("PATH");
};

std::array<int, 2> heard{};  // a pipe

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

TEST_CASE("how ranks end counts where a launcher has left SIGCHLD ignored") {
  const Handled ignored(SIGCHLD, SIG_IGN);
  CHECK(run("[ $RANK = 1 ] && exit 3; exec sleep 300", 3) == 3);
  CHECK_THAT(complaint("[ $RANK = 2 ] && kill -9 $$; exec sleep 300"),
             ContainsSubstring("rank 2 is lost: ended by signal 9"));
  CHECK(run("exit 0", 3) == 0);
  struct sigaction now = {};
  REQUIRE(sigaction(SIGCHLD, nullptr, &now) == 0);
  CHECK(now.sa_handler == SIG_IGN);  // as it was
}

TEST_CASE("a rank that is stopped before its program runs does not act for this process") {
  REQUIRE(pipe2(heard.data(), O_NONBLOCK | O_CLOEXEC) == 0);
  {
    const Handled told(SIGTERM,
                       [](int) { [[maybe_unused]] const auto n = write(heard[1], "!", 1); });
    const LongPath path;
    CHECK_THROWS_AS(spawn_ranks({.command = {"no-such-program"}, .ranks = 2, .limit = 1ms}),
                    EnvironmentError);
  }
  char byte = 0;
  CHECK(read(heard[0], &byte, 1) == -1);
  for (const int end : heard) close(end);
}

TEST_CASE("each rank reads all of the input") {
  const TemporaryFolder folder;
  const std::string to = folder.write("input", "");
  const std::string text(200'000, 'x');  // more than a pipe holds
  REQUIRE(spawn_ranks({.command = {"/bin/sh", "-c", "cat > " + to + "$RANK"},
                       .ranks = 3,
                       .limit = 60s,
                       .input = text}) == 0);
  for (const char* rank : {"0", "1", "2"}) CHECK(line_of(to + rank) == text);
}
