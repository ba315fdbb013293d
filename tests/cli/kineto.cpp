#include "tests/cli/kineto.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace zeroplan::tests {
namespace {

using Json = nlohmann::json;

std::string cuda_name(const std::string& kernel) {
  const std::string kind = kind_of_kernel(kernel);
  if (kind == "products") return "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTT";
  if (kind == "attention") return "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64> >";
  if (kernel.find("norm") != std::string::npos) {
    return "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>";
  }
  return "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor>";
}

struct Names {
  std::string kernel, noted;
};

Names nccl_names(const std::string& collective) {
  if (collective == "all-gather") return {"ncclDevKernel_AllGather_RING_LL", "_allgather_base"};
  if (collective == "reduce-scatter") {
    return {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "_reduce_scatter_base"};
  }
  if (collective == "all-reduce") return {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "allreduce"};
  if (collective == "all-to-all") return {"ncclDevKernel_SendRecv", "all_to_allv"};
  return {"ncclDevKernel_SendRecv", "send"};
}

class Writer {
 public:
  Json events = Json::array();

  // Gives the seconds after which the next step begins.
  double step(const Json& timeline,
              double seconds,
              const Slower& slower,
              double length,
              double start,
              std::size_t number) {
    std::vector<Json> order(timeline.at("events").begin(), timeline.at("events").end());
    std::ranges::stable_sort(order, {},
                             [](const Json& e) { return e.at("seconds").get<double>(); });
    double delay = 0;
    for (const Json& event : order) {
      const std::string kind = event.at("kind");
      if (kind == "allocate" || kind == "free") continue;
      if (kind == "compute" && event.at("name") != "optimizer") continue;
      const char* duration = kind == "kernel" ? "busy_seconds" : "duration_seconds";
      const double times = slower(event);
      const double takes = event.at(duration).get<double>();
      write(event, kind, start + length * (event.at("seconds").get<double>() + delay),
            length * times * takes);
      // What nothing hides puts off all that follows.
      const bool computes = kind == "kernel" || kind == "compute";
      delay += (times - 1) * (computes ? takes : event.at("exposed_seconds").get<double>());
    }
    const double all = length * (seconds + delay);
    add({{"cat", "user_annotation"}, {"name", "ProfilerStep#" + std::to_string(number)}}, start,
        all);
    return start + all;
  }

 private:
  void add(Json event, double start, double seconds) {
    constexpr double epoch = 1e9, microseconds = 1e6;
    event["ph"] = "X";
    event["pid"] = 0;
    event["ts"] = epoch + microseconds * start;
    event["dur"] = microseconds * seconds;
    events.push_back(std::move(event));
  }

  void write(const Json& event, const std::string& kind, double start, double seconds) {
    const std::string name = event.at("name");
    if (kind == "kernel") {
      return add({{"cat", "kernel"},
                  {"name", cuda_name(name)},
                  {"tid", 7},
                  {"args", {{"device", 0}, {"stream", 7}}}},
                 start, seconds);
    }
    if (kind == "compute") {
      return add({{"cat", "kernel"},
                  {"name", "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor>"},
                  {"tid", 7}},
                 start, seconds);
    }
    const std::string collective = kind == "message" ? "send-recv" : name;
    const auto calls = event.at("calls").get<std::int64_t>();
    const double each = seconds / static_cast<double>(calls);
    for (std::int64_t i = 0; i < calls; ++i) {
      const Names names = nccl_names(collective);
      add({{"cat", "kernel"},
           {"name", names.kernel},
           {"tid", 20},
           {"args",
            {{"device", 0},
             {"Collective name", names.noted},
             {"Group size", event.at("ranks")},
             {"Process Group Description", "mesh_" + event.at("group").get<std::string>()}}}},
          start + static_cast<double>(i) * each, each);
    }
  }
};

}  // namespace

std::string kind_of_kernel(const std::string& name) {
  static const std::set<std::string> linears{
      "qkv",       "q",       "q_down",    "q_up",        "kv_down",    "kv_up",       "proj",
      "router",    "fc1",     "fc2",       "shared_fc1",  "shared_fc2", "shared_gate", "q_proj",
      "k_proj",    "v_proj",  "o_proj",    "q_a_proj",    "q_b_proj",   "kv_a_proj",   "kv_b_proj",
      "gate_proj", "up_proj", "down_proj", "output layer"};
  std::string module = name;
  for (const std::string end : {" again", " input gradient", " weight gradient"}) {
    if (module.ends_with(end)) module.resize(module.size() - end.size());
  }
  return linears.contains(module)     ? "products"
         : module == "core attention" ? "attention"
                                      : "memory-bound";
}

Json kineto_trace(const Json& timeline,
                  double step_seconds,
                  const Slower& slower,
                  const std::vector<double>& lengths) {
  Writer writer;
  double start = 0;
  std::size_t number = 5;
  for (const double length : lengths) {
    start = writer.step(timeline, step_seconds, slower, length, start, number++);
  }
  return {{"schemaVersion", 1},
          {"deviceProperties", Json::array({{{"id", 0}, {"name", "NVIDIA H100 80GB HBM3"}}})},
          {"traceEvents", writer.events},
          {"traceName", "/tmp/trace.json"}};
}

}  // namespace zeroplan::tests
