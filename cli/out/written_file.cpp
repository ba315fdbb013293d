// How does a file arrive whole, or not at all? Front doors: write_file, check_outputs.
#include "cli/out/written_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

// Where a path leads, through links, whether or not there is a file.
fs::path place_of(const std::string& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(path, error);
  return error ? fs::path(path) : place;
}

[[noreturn]] void lose(const std::string& path, int error) {
  throw std::system_error(error, std::generic_category(), "cannot write " + path);
}

// An open file, which goes with its name unless it is kept.
class Draft {
 public:
  Draft(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!name_.empty()) unlink(name_.c_str());
  }

  void fill(std::string_view content, const std::string& path) {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) lose(path, errno);
      content.remove_prefix(static_cast<std::size_t>(written));
    }
    if (close(std::exchange(descriptor_, -1)) != 0) lose(path, errno);
  }
  // Gives the draft the name of the file, with what may be done with the one that has it now.
  void replace(const fs::path& place, const std::string& path) {
    struct stat old = {};
    const bool was = stat(place.c_str(), &old) == 0;
    if (was && chmod(name_.c_str(), old.st_mode & 07777) != 0) lose(path, errno);
    if (std::rename(name_.c_str(), place.c_str()) != 0) lose(path, errno);
    name_.clear();
  }

 private:
  std::string name_;  // empty: nothing goes
  int descriptor_;
};

Draft draft_beside(const fs::path& place, const std::string& path) {
  std::string name = fmt::format("{}.{}.part", place.string(), getpid());
  const int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) throw InputError("cannot write " + path);  // what was typed is wrong
  return {std::move(name), descriptor};
}

}  // namespace

void write_file(const std::string& path, std::string_view content) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error like others
  std::error_code error;
  const fs::path place = place_of(path);
  const fs::file_status status = fs::status(place, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a device, a pipe
    const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) throw InputError("cannot write " + path);
    Draft("", descriptor).fill(content, path);
    return;
  }
  if (fs::exists(status) && access(place.c_str(), W_OK) != 0) {
    throw InputError("cannot write " + path);
  }
  Draft draft = draft_beside(place, path);
  draft.fill(content, path);
  draft.replace(place, path);
}

void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& read) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [flag, path] = outputs[i];
    if (path.empty()) continue;
    for (const std::string& input : read) {
      std::error_code error;
      if (!input.empty() && fs::is_regular_file(input, error) &&
          place_of(input) == place_of(path)) {
        throw InputError(
            fmt::format("{} {}: is read too, and would be lost", flag, in_quotes(path)));
      }
    }
    for (std::size_t other = 0; other < i; ++other) {
      if (outputs[other].path.empty() || place_of(outputs[other].path) != place_of(path)) continue;
      std::error_code error;
      if (fs::exists(path, error) && !fs::is_regular_file(path, error)) continue;  // /dev/null
      throw InputError(fmt::format("{} {}: {} writes the same file", flag, in_quotes(path),
                                   outputs[other].flag));
    }
  }
}

std::vector<std::string> files_read(const LayoutArguments& arguments) {
  std::vector<std::string> files;
  for (const std::string& name : {arguments.model, arguments.config, arguments.cluster}) {
    if (name.empty()) continue;
    files.push_back(name);
    files.push_back((fs::path(name) / "config.json").string());  // of a model's folder
    files.push_back(name.substr(0, name.rfind('#')));            // of a row of a sweep
  }
  return files;
}

}  // namespace zeroplan
