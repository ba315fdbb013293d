// What starts a run with an exported file? Front door: launch_line.
#include <fmt/format.h>

#include <algorithm>

#include "cost_model/question/units.hpp"
#include "presets/configuration.hpp"
#include "presets/configuration/torchtitan_python.hpp"
#include "presets/megatron_hybrid.hpp"

namespace zeroplan {
namespace {

// Megatron-LM asks for one queue of launches before Blackwell, so that what is sent starts before
// what is computed beside it (training/arguments.py validate_args); Megatron-FSDP and the overlap
// of experts want more.
bool wants_one_queue(const Problem& p) {
  constexpr std::int64_t blackwell = 100;
  return (p.layout.tp > 1 || p.layout.cp > 1) && p.layout.zero < ZeroStage::gradients &&
         !p.runtime.megatron.overlap_moe_expert_parallel_comm &&
         p.cluster.gpu.compute_capability < blackwell;
}

}  // namespace

std::string launch_line(const Problem& problem, ConfigurationFormat format) {
  const ClusterSpec& cluster = problem.cluster;
  const std::int64_t each = std::min(cluster.gpus, cluster.gpus_per_node);
  const std::int64_t nodes = ceil_div(cluster.gpus, each);
  const std::string torchrun = fmt::format("torchrun --nnodes {} --nproc-per-node {}", nodes, each);
  switch (format) {
    case ConfigurationFormat::megatron:
      return (wants_one_queue(problem) ? "CUDA_DEVICE_MAX_CONNECTIONS=1 " : "") + torchrun +
             (is_of_halves(problem.model) ? " pretrain_hybrid.py" : " pretrain_gpt.py") +
             " $(cat FILE)";
    case ConfigurationFormat::megatron_bridge:
      return torchrun + " FILE";
    case ConfigurationFormat::torchtitan:
      if (reads_python(problem)) {  // FILE without its .py
        return "PYTHONPATH=. " + torchrun + " -m torchtitan.train --module FILE --config plan";
      }
      return torchrun + " -m torchtitan.train --job.config_file FILE";
    case ConfigurationFormat::deepspeed:
      return fmt::format(
          "deepspeed --num_nodes {} --num_gpus {} TRAIN.py --deepspeed "
          "--deepspeed_config FILE",
          nodes, each);
    case ConfigurationFormat::trainer:
      return torchrun + " TRAIN.py FILE";
    case ConfigurationFormat::accelerate:
      return nodes == 1 ? "accelerate launch --config_file FILE TRAIN.py"
                        : "accelerate launch --config_file FILE --machine_rank RANK "
                          "--main_process_ip HOST --main_process_port 29500 TRAIN.py";
    case ConfigurationFormat::nanotron:
      break;
  }
  return torchrun + " run_train.py --config-file FILE";
}

}  // namespace zeroplan
