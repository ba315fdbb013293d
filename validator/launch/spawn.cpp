// How do N ranks run on this node, and never outlive the job? Front door: spawn_ranks.
#include "validator/launch/spawn.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "gpu_probe/environment_error.hpp"
#include "validator/rendezvous/socket.hpp"

extern char** environ;

namespace zeroplan {
namespace {

using namespace std::chrono_literals;

constexpr int not_started = 127;  // as shells say it

struct Rank {
  pid_t process = -1;
  bool running = false;
};

std::uint16_t free_port() {
  return port_of(listen_on("127.0.0.1", 0));
}

std::string fresh_nonce() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::vector<std::string> variables_of(std::int64_t rank,
                                      std::int64_t ranks,
                                      std::uint16_t port,
                                      const std::string& nonce) {
  const std::vector<std::string> own{fmt::format("RANK={}", rank),
                                     fmt::format("WORLD_SIZE={}", ranks),
                                     fmt::format("LOCAL_RANK={}", rank),
                                     fmt::format("LOCAL_WORLD_SIZE={}", ranks),
                                     "MASTER_ADDR=127.0.0.1",
                                     fmt::format("MASTER_PORT={}", port),
                                     "ZEROPLAN_ADDRESS=127.0.0.1",
                                     fmt::format("ZEROPLAN_PORT={}", port),
                                     "ZEROPLAN_NONCE=" + nonce};
  std::vector<std::string> all = own;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(own.begin(), own.end(),
                                      [&](const std::string& o) { return o.starts_with(name); });
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

pid_t start(const std::vector<std::string>& command, const std::vector<std::string>& variables) {
  // All memory is taken before the fork: afterwards only plain system calls are safe.
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> environment = pointers(variables);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw EnvironmentError(fmt::format("fork: {}", std::strerror(errno)));
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(not_started);  // it ended before the line above
  execvpe(arguments[0], arguments.data(), environment.data());
  _exit(not_started);
}

class Job {
 public:
  explicit Job(const Spawn& spawn) : spawn_(spawn) {}
  ~Job() { stop(); }

  void start_all() {
    const std::uint16_t port = free_port();
    const std::string nonce = fresh_nonce();
    for (std::int64_t rank = 0; rank < spawn_.ranks; ++rank) {
      const pid_t child = start(spawn_.command, variables_of(rank, spawn_.ranks, port, nonce));
      ranks_.push_back({.process = child, .running = true});
    }
  }

  int wait_for_all() {
    const Deadline until = Clock::now() + spawn_.limit;
    while (any_runs()) {
      if (const int code = reap(); code != 0) return code;
      if (Clock::now() >= until) {
        throw EnvironmentError(fmt::format("the ranks did not end within {} s; all were stopped",
                                           std::chrono::duration<double>(spawn_.limit).count()));
      }
      std::this_thread::sleep_for(5ms);
    }
    return 0;
  }

 private:
  bool any_runs() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; });
  }

  // The exit code of a rank that ended otherwise than with 0 since the last call. One that was
  // killed is named before those that failed because it was gone.
  int reap() {
    int code = 0;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      int status = 0;
      if (!ranks_[i].running || waitpid(ranks_[i].process, &status, WNOHANG) == 0) continue;
      ranks_[i].running = false;
      if (WIFSIGNALED(status)) {
        throw EnvironmentError(fmt::format("rank {} is lost: ended by signal {} ({})", i,
                                           WTERMSIG(status), strsignal(WTERMSIG(status))));
      }
      if (WEXITSTATUS(status) == not_started) {
        throw EnvironmentError(
            fmt::format("rank {}: '{}' could not be started", i, spawn_.command.front()));
      }
      if (code == 0) code = WEXITSTATUS(status);
    }
    return code;
  }

  void signal_all(int signal) {
    for (const Rank& rank : ranks_) {
      if (rank.running) kill(rank.process, signal);
    }
  }

  // A rank in a driver call may not hear SIGTERM.
  void stop() {
    constexpr auto grace = 500ms;
    signal_all(SIGTERM);
    const Deadline until = Clock::now() + grace;
    while (any_runs() && Clock::now() < until) {
      collect(WNOHANG);
      std::this_thread::sleep_for(5ms);
    }
    signal_all(SIGKILL);
    collect(0);
  }

  void collect(int options) {
    for (Rank& rank : ranks_) {
      if (rank.running && waitpid(rank.process, nullptr, options) != 0) rank.running = false;
    }
  }

  const Spawn& spawn_;
  std::vector<Rank> ranks_;
};

}  // namespace

int spawn_ranks(const Spawn& job) {
  Job running(job);
  running.start_all();
  return running.wait_for_all();
}

}  // namespace zeroplan
