#pragma once
// Which rank of how many is this process, and where do the ranks meet?

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace zeroplan {

/// What a launcher told this process.
struct Launch {
  std::string launcher;  // torchrun, Open MPI, Slurm; empty: started by hand, alone
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t local_rank = 0;  // among the processes of this node
  std::int64_t local_world = 1;
  std::string address = "127.0.0.1";  // of rank 0
  std::uint16_t port = 0;             // where rank 0 listens; 0: nobody to meet
  std::uint64_t nonce = 0;            // the same in all ranks of a job, another in other jobs

  friend bool operator==(const Launch&, const Launch&) = default;
};

/// An environment variable; empty when it is not set.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

/// The variables of this process.
Variables process_variables();

/// The launch that the innermost launcher described: torchrun, then Open MPI, then Slurm, since the
/// first two are started inside the third. ZEROPLAN_ADDRESS, ZEROPLAN_PORT and ZEROPLAN_NONCE win
/// over what the launcher says. A batch script is not taken for a task of its job. Throws
/// EnvironmentError when variables are missing, are no numbers, or contradict each other.
/// Sources: torch distributed/elastic/agent/server/local_elastic_agent.py; Open MPI 4.1
/// "Running MPI jobs" FAQ; srun(1), OUTPUT ENVIRONMENT VARIABLES.
Launch read_launch(const Variables& variables);

/// Which of the `visible` GPUs a rank takes: that of its number on its node or, where its launcher
/// shows each task one alone, that one. Throws EnvironmentError when there is none for it.
std::int64_t gpu_of(const Launch& launch, std::int64_t visible);

/// Which of the `visible` GPUs a rank takes where ranks may share: those of a node in turns.
std::int64_t shared_gpu_of(const Launch& launch, std::int64_t visible);

/// What NCCL must find in the environment of a rank that shares its GPU with others. Ranks of one
/// host may not, so each has a name of its own for it (NCCL_HOSTID), and data go through the
/// network; NCCL 2.30 asks for NCCL_MULTI_RANK_GPU_ENABLE beside; and one block of threads a rank
/// leaves the others room to run at the same time. Source: NCCL's user guide, environment
/// variables.
std::map<std::string, std::string> sharing_variables(const Launch& launch);

/// The first host of a Slurm node list: "node[003-005,9],x" is node003. Throws EnvironmentError
/// when the list cannot be read.
std::string first_host(std::string_view node_list);

}  // namespace zeroplan
