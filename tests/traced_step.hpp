#pragma once
// One step of two kernels, a collective and a copy, as PyTorch's profiler leaves it.

#include <string_view>

namespace zeroplan::tests {

inline constexpr std::string_view traced_step =
    R"({"schemaVersion": 1, "distributedInfo": {"rank": 1, "world_size": 8},
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
 {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 7}], "traceName": "t.json"})";

}  // namespace zeroplan::tests
