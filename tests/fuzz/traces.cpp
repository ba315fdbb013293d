// What PyTorch's profiler and its memory recorder leave behind.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/overlay/kineto_reader.hpp"
#include "cli/overlay/pickle_reader.hpp"
#include "cli/overlay/snapshot_reader.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/source_dir.hpp"
#include "tests/traced_step.hpp"
#include "validator/overlay/measured_step.hpp"

namespace zeroplan::fuzz {
namespace {

// A file that needs no disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("fuzz", 0)) {
    require(file_ >= 0, "memory can be a file");
    while (!bytes.empty()) {
      const ssize_t written = write(file_, bytes.data(), bytes.size());
      require(written > 0, "memory can be written");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(file_); }

  std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

 private:
  int file_;
};

}  // namespace

void look_at_trace(std::string_view bytes) {
  const MeasuredStep step = measured_step(read_kineto(MemoryFile(bytes).path()));
  require(step.shortest <= step.longest, "the shortest step is not the longest");
}

std::vector<std::string> trace_seeds() {
  return {std::string(tests::traced_step),
          R"([{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": "1.5", "dur": 5, "tid": 1}])"};
}

void look_at_snapshot(std::string_view bytes) {
  require(held_peak(read_snapshot(MemoryFile(bytes).path())).bytes >= 0, "no memory is negative");
}

void look_at_pickle(std::string_view bytes) {
  const Pickle pickle{std::string(bytes), "file"};
  pickle.find(pickle.root(), "segments");
}

std::vector<std::string> snapshot_seeds() {
  std::vector<std::string> all;
  for (const char protocol : std::string("2345")) {
    all.push_back(contents(
        fmt::format("{}/tests/reference/traces/snapshot_{}.pickle", source_dir(), protocol)));
  }
  return all;
}

}  // namespace zeroplan::fuzz
