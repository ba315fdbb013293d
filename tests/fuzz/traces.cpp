// What PyTorch's profiler and its memory recorder leave behind.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/overlay/kineto_reader.hpp"
#include "cli/overlay/pickle_reader.hpp"
#include "cli/overlay/snapshot_reader.hpp"
#include "tests/fuzz/target.hpp"
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
  return {R"({"schemaVersion": 1, "distributedInfo": {"rank": 1, "world_size": 8},
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "ts": 1000.5, "dur": 100, "tid": 1, "args": {}},
    {"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#AdamW.step", "ts": 1080, "dur": 20},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1001, "dur": 5, "tid": 1},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1090, "dur": 1, "args": {"correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "ampere_sgemm", "ts": 1010, "dur": 40, "args": {"device": 0, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL", "ts": 1030, "dur": 40, "args": {"device": 0,
      "Collective name": "_allgather_base", "In msg nelems": 8, "Out msg nelems": 64, "Group size": 8,
      "dtype": "BFloat16", "Process Group Description": "mesh_dp", "In split size": [1, [2]]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 1001, "dur": 2, "args": {"device": 0, "bytes": 4096}},
    {"ph": "X", "cat": "kernel", "name": "elementwise", "ts": 1120, "dur": 8, "args": {"device": 0, "correlation": 7}},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 7}], "traceName": "t.json"})",
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
        fmt::format(ZEROPLAN_SOURCE_DIR "/tests/reference/traces/snapshot_{}.pickle", protocol)));
  }
  return all;
}

}  // namespace zeroplan::fuzz
