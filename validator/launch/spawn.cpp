// How do N ranks run on this node, and never outlive the job? Front door: spawn_ranks.
#include "validator/launch/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

[[noreturn]] void fail(const char* call) {
  throw EnvironmentError(fmt::format("{}: {}", call, std::strerror(errno)));
}

// Children that nobody waits for are thrown away with their exit codes where SIGCHLD is ignored,
// as some launchers leave it to those they start.
class ChildrenAreKept {
 public:
  ChildrenAreKept() {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    if (sigaction(SIGCHLD, &usual, &before_) != 0) fail("sigaction");
  }
  ChildrenAreKept(const ChildrenAreKept&) = delete;
  ChildrenAreKept& operator=(const ChildrenAreKept&) = delete;
  ~ChildrenAreKept() { sigaction(SIGCHLD, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
};

// Signals wait while a child is made: it must not run the handlers of this process.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, &before_) != 0) fail("sigprocmask");
  }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  /// In the child: as a program finds signals that was started by hand.
  void begin_anew() const {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &usual, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_ = {};
};

// A file without a name that holds the text, to be read from its beginning.
Socket file_of(const std::string& text) {
  Socket file(memfd_create("zeroplan input", MFD_CLOEXEC));
  if (!file.is_open()) fail("memfd_create");
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(file.descriptor(), rest.data(), rest.size());
    if (written < 0) fail("write");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (lseek(file.descriptor(), 0, SEEK_SET) != 0) fail("lseek");
  return file;
}

pid_t start(const Spawn& spawn, const std::vector<std::string>& variables) {
  // All memory is taken before the fork: afterwards only plain system calls are safe.
  const std::vector<char*> arguments = pointers(spawn.command);
  const std::vector<char*> environment = pointers(variables);
  const Socket input = spawn.input ? file_of(*spawn.input) : Socket();
  const pid_t parent = getpid();
  const SignalsWait signals;
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(not_started);  // it ended before the line above
  if (input.is_open() && dup2(input.descriptor(), STDIN_FILENO) < 0) _exit(not_started);
  signals.begin_anew();
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
      const pid_t child = start(spawn_, variables_of(rank, spawn_.ranks, port, nonce));
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
      if (!ranks_[i].running) continue;
      int status = 0;
      const pid_t ended = waitpid(ranks_[i].process, &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno == EINTR)) continue;
      ranks_[i].running = false;
      if (ended < 0) {
        throw EnvironmentError(
            fmt::format("rank {} is lost: how it ended is not known: {}", i, std::strerror(errno)));
      }
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
      if (!rank.running) continue;
      pid_t ended = 0;
      do ended = waitpid(rank.process, nullptr, options);
      while (ended < 0 && errno == EINTR);
      if (ended != 0) rank.running = false;
    }
  }

  const Spawn& spawn_;
  const ChildrenAreKept kept_;
  std::vector<Rank> ranks_;
};

}  // namespace

int spawn_ranks(const Spawn& job) {
  Job running(job);
  running.start_all();
  return running.wait_for_all();
}

}  // namespace zeroplan
