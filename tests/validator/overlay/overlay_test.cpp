#include "validator/overlay/overlay.hpp"

#include "tests/catch.hpp"
#include "validator/overlay/measured_step.hpp"
#include "validator/overlay/memory_history.hpp"
#include "validator/overlay/self_time.hpp"
#include "validator/overlay/spans.hpp"

using namespace zeroplan;

TEST_CASE("kernels are known by their libraries' names") {
  const std::pair<std::string_view, Work> known[] = {
      {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>", Work::products},
      {"nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNN", Work::products},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", Work::products},
      {"ampere_sgemm_128x128_tn", Work::products},
      {"void cublasLt::splitKreduce_kernel<32, 16, int>", Work::products},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", Work::attention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16", Work::attention},
      {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80", Work::attention},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Work::collective},
      {"void multi_tensor_apply_kernel<TensorListMetadata<5>, FusedAdamMathFunctor>",
       Work::optimizer},
      {"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>", Work::memory_bound},
      {"void cunn_SoftMaxForward<4, float, float, float>", Work::memory_bound},
      {"void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel", Work::memory_bound},
      {"void at::native::CatArrayBatchedCopy_aligned16_contig<c10::BFloat16>", Work::memory_bound},
      {"Memcpy HtoD (Pinned -> Device)", Work::copies},
      {"Memset (Device)", Work::copies},
      {"aten::mm", Work::products},
      {"my_own_kernel", Work::other},
  };
  for (const auto& [name, work] : known) {
    CAPTURE(name);
    CHECK(work_of(name) == work);
  }
}

TEST_CASE("collectives are known by NCCL's names and by PyTorch's") {
  const std::pair<std::string_view, std::optional<Collective>> known[] = {
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", Collective::all_reduce},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", Collective::reduce_scatter},
      {"_allgather_base", Collective::all_gather},
      {"all_to_allv", Collective::all_to_all},
      {"gloo:all_reduce", Collective::all_reduce},
      {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", Collective::send_recv},
      {"ncclDevKernel_Broadcast_RING_LL", Collective::broadcast},
      {"ncclDevKernel_Generic_1", std::nullopt},
  };
  for (const auto& [name, collective] : known) {
    CAPTURE(name);
    CHECK(collective_of(name) == collective);
  }
}

TEST_CASE("spans cover what they cover once") {
  const std::vector<Span> spans = covered({{5, 7}, {1, 3}, {2, 4}, {6, 6}, {4, 4.5}});
  REQUIRE(spans.size() == 2);
  CHECK(length(spans) == 5.5);
  CHECK(uncovered({0, 10}, spans) == 4.5);
  CHECK(uncovered({2, 3}, spans) == 0);
  CHECK(uncovered({4.5, 5}, spans) == 0.5);
}

TEST_CASE("an operator's own time is without those that it calls, on its own thread") {
  const auto at = [](double start, double seconds, std::int64_t thread) {
    return TraceEvent{.start = start, .seconds = seconds, .thread = thread};
  };
  const std::vector<TraceEvent> events{at(0, 10, 1), at(0, 4, 1), at(1, 2, 1), at(5, 1, 1),
                                       at(2, 3, 2)};
  CHECK(self_seconds(events, {0, 1, 2, 3, 4}) == std::vector<double>{5, 2, 2, 1, 3});
}

namespace {

CallSum call(Collective collective, std::string group, std::int64_t ranks, double seconds) {
  return {.collective = collective,
          .group = std::move(group),
          .ranks = ranks,
          .work = {.count = 1, .seconds = seconds}};
}

}  // namespace

TEST_CASE("a measured collective stands beside the predicted one of its group") {
  const StepWork predicted{
      .seconds = 1,
      .calls = {call(Collective::all_gather, "tp", 4, 1), call(Collective::all_gather, "dp", 4, 2),
                call(Collective::all_gather, "ep", 8, 4),
                call(Collective::all_to_all, "ep", 8, 8)}};
  const auto seconds = [&](const CallSum& measured) {
    const Overlay out = overlay({.seconds = 1, .calls = {measured}}, predicted);
    for (const OverlayRow& row : out.rows) {
      if (row.measured) return row.predicted ? row.predicted->seconds : 0;
    }
    return -1.0;
  };
  CHECK(seconds(call(Collective::all_gather, "TENSOR_MODEL_PARALLEL_GROUP", 4, 1)) == 1);
  CHECK(seconds(call(Collective::all_gather, "mesh_dp", 4, 1)) == 2);
  CHECK(seconds(call(Collective::all_gather, "default_pg", 4, 1)) == 3);  // either of both
  CHECK(seconds(call(Collective::all_gather, "", 8, 1)) == 4);
  CHECK(seconds(call(Collective::all_gather, "", 0, 1)) == 7);  // of no known size
  CHECK(seconds(call(Collective::all_gather, "", 16, 1)) == 0);
  CHECK(seconds(call(Collective::send_recv, "", 8, 1)) == 8);  // NCCL's all-to-all
}

TEST_CASE("a history that begins in the middle of a run has its peak all the same") {
  MemoryHistory history{.labels = {"weights", "activation"},
                        .held = {{0, {1000, 0}}, {5000, {512, 1}}},
                        .events = {{false, 9000, {4096, 1}},
                                   {true, 3000, {2048, 1}},
                                   {false, 3000, {2048, 1}},
                                   {true, 5000, {512, 1}}}};
  const HeldPeak peak = held_peak(history);
  CHECK(peak.bytes == 1024 + 4096);  // at the start
  CHECK(peak.event == 0);
  CHECK(peak.unmatched == 0);
  CHECK(peak.blocks == 2);
  history.events.push_back({false, 77, {512, 0}});
  history.events.push_back({true, 77, {512, 0}});
  history.events.push_back({true, 78, {512, 0}});  // and is not held at the end
  CHECK(held_peak(history).unmatched > 0);
}
