// How does a tracer run in the user's Python? Front door: traced_row.
#include "cli/validate/trace_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/validate/tracer_files.hpp"
#include "gpu_probe/environment_error.hpp"
#include "presets/embedded.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr int not_started = 127;  // as shells say it

// What the scripts find beside them in the source folder; gone when this goes.
class Workshop {
 public:
  Workshop() {
    std::string name = (fs::temp_directory_path() / "zeroplan-trace-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw EnvironmentError(fmt::format("{}: {}", name, std::strerror(errno)));
    }
    root_ = name;
    fs::create_directories(scripts());
    fs::create_directories(root_ / "presets" / "models");
    for (const TracerFile& file : tracer_files()) write(scripts() / file.name, file.text);
    for (const EmbeddedPreset& preset : embedded_presets()) {
      if (preset.kind != "models") continue;
      write(root_ / "presets" / "models" / fmt::format("{}.json", preset.name), preset.json);
    }
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  fs::path scripts() const { return root_ / "validator" / "pytorch"; }
  fs::path file(std::string_view name) const { return root_ / name; }
  std::string text(std::string_view name) const {
    std::ostringstream content;
    content << std::ifstream(file(name)).rdbuf();
    return content.str();
  }

 private:
  static void write(const fs::path& path, std::string_view text) {
    std::ofstream out(path);
    out << text;
    out.close();
    if (!out) throw EnvironmentError(fmt::format("{}: cannot be written", path.string()));
  }

  fs::path root_;
};

// Starts a process with nothing to read, both outputs in one file, in a process group of its own.
pid_t start(const std::vector<std::string>& command, const std::string& log) {
  std::vector<std::string> copy = command;  // taken before the fork, as all memory
  std::vector<char*> words;
  for (std::string& word : copy) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw EnvironmentError(fmt::format("fork: {}", std::strerror(errno)));
  if (child > 0) return child;
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (nothing < 0 || out < 0) _exit(not_started);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execvp(words[0], words.data());
  _exit(not_started);
}

// The exit code of a process, or minus the signal that ended it. After `limit` it is killed with
// all that it started.
int wait_for(pid_t child, std::chrono::seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);  // before it had its group
      waitpid(child, &status, 0);
      throw EnvironmentError(
          fmt::format("the trace did not end within {} s (--timeout)", limit.count()));
    }
    std::this_thread::sleep_for(20ms);
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// What the script says of an error in one line; else the last line.
std::string reason_in(const std::string& log) {
  constexpr std::string_view mark = "trace: error: ";
  std::istringstream lines(log);
  std::string line;
  std::string last;
  while (std::getline(lines, line)) {
    if (line.starts_with(mark)) return line.substr(mark.size());
    if (!line.empty()) last = line;
  }
  return last.empty() ? "it says nothing" : last;
}

}  // namespace

nlohmann::json traced_row(const TraceRun& run) {
  const Workshop workshop;
  std::vector<std::string> command{run.python, (workshop.scripts() / run.script).string()};
  command.insert(command.end(), run.words.begin(), run.words.end());
  command.insert(command.end(), {"--out", workshop.file("row").string()});
  const int code = wait_for(start(command, workshop.file("log").string()), run.limit);
  if (code == not_started) {
    throw EnvironmentError(fmt::format("--python {}: could not be started", run.python));
  }
  const std::string log = workshop.text("log");
  if (code == 2) throw InputError(reason_in(log));
  if (code < 0) {
    throw EnvironmentError(fmt::format("the trace was ended by signal {}", -code));
  }
  if (code != 0) throw EnvironmentError(fmt::format("the trace failed: {}", reason_in(log)));
  nlohmann::json row = nlohmann::json::parse(workshop.text("row"), nullptr, false);
  if (!row.is_object()) throw EnvironmentError("the trace wrote no row");
  return row;
}

}  // namespace zeroplan
