// NCCL with the one rank that one GPU allows: it starts, works and ends; and waits end too.
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/cuda/gpu_validation.hpp"
#include "validator/cuda/nccl_handle.hpp"
#include "validator/cuda/nccl_run.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

ncclUniqueId fresh_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

}  // namespace

TEST_CASE("a communicator of one rank reduces to what was there") {
  check(cudaSetDevice(0), "cudaSetDevice");
  const Watch watch;
  NcclHandle nccl(fresh_id(), 1, 0, watch);
  const CudaStream stream;
  const DeviceMemory data(1024 * sizeof(float));
  const std::vector<float> sent(1024, 3.0F);
  std::vector<float> found(1024);
  check(cudaMemcpy(data.get(), sent.data(), 4096, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // the stream below does not wait for it
  nccl.settle(
      ncclAllReduce(data.get(), data.get(), 1024, ncclFloat32, ncclSum, nccl.get(), stream.get()),
      "ncclAllReduce");
  nccl.wait(stream, "an all-reduce");
  check(cudaMemcpy(found.data(), data.get(), 4096, cudaMemcpyDeviceToHost), "cudaMemcpy");
  CHECK(found == sent);
  nccl.finish();
}

TEST_CASE("a rank whose peer never comes gives up, and one whose peer is lost says so") {
  check(cudaSetDevice(0), "cudaSetDevice");
  const Watch impatient{.patience = std::chrono::milliseconds(1500)};
  CHECK_THROWS_AS(NcclHandle(fresh_id(), 2, 0, impatient), PeerLost);
  const Watch bereft{.lost_peer = [] { return std::optional<std::string>("rank 1 is gone"); }};
  CHECK_THROWS_AS(NcclHandle(fresh_id(), 2, 0, bereft), PeerLost);
}

TEST_CASE("a job of one rank runs as predicted") {
  const Launch launch{.launcher = "test", .nonce = 5};
  Rendezvous star(launch, std::chrono::seconds(5));
  const Problem p = tests::tiny_problem(tests::tiny_llama(), {.dp = 1}, 2);
  const GpuValidation result =
      validate_on_gpus({p, {}}, {p, {}}, [&](const Problem& problem, Asked asked) {
        return run_over_nccl(problem, timed_where({}, asked), launch, 0, star);
      });
  CHECK(result.agrees());
}
