#include "validator/launch/launch.hpp"

#include <map>

#include "gpu_probe/environment_error.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

Variables of(Environment environment) {
  return [environment](std::string_view name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string complaint(const Environment& environment) {
  try {
    read_launch(of(environment));
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "accepted";
}

const Environment torchrun{{"RANK", "9"},         {"WORLD_SIZE", "16"},
                           {"LOCAL_RANK", "1"},   {"LOCAL_WORLD_SIZE", "8"},
                           {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29400"}};

const Environment slurm{{"SLURM_PROCID", "11"},
                        {"SLURM_NTASKS", "12"},
                        {"SLURM_LOCALID", "3"},
                        {"SLURM_NODEID", "2"},
                        {"SLURM_TASKS_PER_NODE", "4(x3)"},
                        {"SLURM_JOB_NODELIST", "gpu[007-008,12]"},
                        {"SLURM_JOB_ID", "123456"},
                        {"SLURM_STEP_ID", "1"}};

const Environment open_mpi{{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                           {"PMIX_NAMESPACE", "prterun-n0-77"}};

Environment with(Environment environment, std::string_view name, std::string_view value) {
  environment[std::string(name)] = value;
  return environment;
}

Environment without(Environment environment, std::string_view name) {
  environment.erase(environment.find(name));
  return environment;
}

}  // namespace

TEST_CASE("a process that nobody launched is rank 0 of 1") {
  CHECK(read_launch(of({})) == Launch{});
}

TEST_CASE("torchrun says everything, and keeps its own port") {
  const Launch launch = read_launch(of(torchrun));
  CHECK(launch.launcher == "torchrun");
  CHECK(launch.rank == 9);
  CHECK(launch.world == 16);
  CHECK(launch.local_rank == 1);
  CHECK(launch.local_world == 8);
  CHECK(launch.address == "n0");
  CHECK(launch.port == 29401);
}

TEST_CASE("Slurm says where the first node is, and Open MPI does not") {
  const Launch task = read_launch(of(slurm));
  CHECK(task.launcher == "Slurm");
  CHECK(task.rank == 11);
  CHECK(task.world == 12);
  CHECK(task.local_rank == 3);
  CHECK(task.local_world == 4);
  CHECK(task.address == "gpu007");
  CHECK(task.port == 20'000 + (123456 + 1) % 10'000);

  CHECK(read_launch(of(with(slurm, "SLURM_TASKS_PER_NODE", "5(x2),2"))).local_world == 2);
  CHECK(read_launch(of(open_mpi)).address == "127.0.0.1");
  const Environment two_nodes = with(open_mpi, "OMPI_COMM_WORLD_SIZE", "8");
  CHECK_THAT(complaint(two_nodes), ContainsSubstring("set ZEROPLAN_ADDRESS"));
  CHECK(read_launch(of(with(two_nodes, "ZEROPLAN_ADDRESS", "head"))).address == "head");
}

TEST_CASE("the innermost launcher wins, and a batch script is no task") {
  Environment both = slurm;
  both.insert(torchrun.begin(), torchrun.end());
  CHECK(read_launch(of(both)).launcher == "torchrun");
  both = slurm;
  both.insert(open_mpi.begin(), open_mpi.end());
  CHECK(read_launch(of(both)).launcher == "Open MPI");
  CHECK(read_launch(of(without(slurm, "SLURM_STEP_ID"))) == Launch{});
}

TEST_CASE("ranks of one job agree on a nonce, and other jobs differ") {
  const auto nonce = [](const Environment& environment) {
    return read_launch(of(environment)).nonce;
  };
  CHECK(nonce(torchrun) == nonce(with(torchrun, "RANK", "0")));
  CHECK(nonce(torchrun) != nonce(with(torchrun, "TORCHELASTIC_RUN_ID", "other")));
  CHECK(nonce(slurm) != nonce(with(slurm, "SLURM_STEP_ID", "2")));
  CHECK(nonce(slurm) != nonce(with(slurm, "ZEROPLAN_NONCE", "mine")));
  CHECK(nonce(with(torchrun, "ZEROPLAN_NONCE", "mine")) ==
        nonce(with(slurm, "ZEROPLAN_NONCE", "mine")));
}

TEST_CASE("what contradicts itself is refused in words") {
  CHECK_THAT(complaint(without(torchrun, "WORLD_SIZE")),
             ContainsSubstring("WORLD_SIZE is not set"));
  CHECK_THAT(complaint(with(torchrun, "RANK", "16")),
             ContainsSubstring("RANK='16'") && ContainsSubstring("0 to 15"));
  CHECK_THAT(complaint(with(torchrun, "LOCAL_RANK", "x")), ContainsSubstring("LOCAL_RANK='x'"));
  CHECK_THAT(complaint(with(torchrun, "LOCAL_RANK", "8")), ContainsSubstring("from 0 to 7"));
  CHECK_THAT(complaint(with(torchrun, "MASTER_PORT", "70000")), ContainsSubstring("MASTER_PORT"));
  CHECK_THAT(complaint(with(torchrun, "ZEROPLAN_PORT", "0")), ContainsSubstring("ZEROPLAN_PORT"));
  CHECK_THAT(complaint(with(slurm, "SLURM_NODEID", "7")),
             ContainsSubstring("does not list node 7"));
  CHECK_THAT(complaint(with(slurm, "SLURM_JOB_NODELIST", "gpu[1")), ContainsSubstring("gpu[1"));
}

TEST_CASE("the first host of a node list") {
  CHECK(first_host("n1") == "n1");
  CHECK(first_host("n1,n2") == "n1");
  CHECK(first_host("node[003-005,9],x") == "node003");
  CHECK(first_host("rack[2,4]n[10-12]") == "rack2n10");
  CHECK_THROWS_AS(first_host(""), EnvironmentError);
  CHECK_THROWS_AS(first_host("n[]"), EnvironmentError);
}

TEST_CASE("a rank takes the GPU of its number, or the only one that it is shown") {
  const Launch third{.rank = 6, .world = 8, .local_rank = 2, .local_world = 4};
  REQUIRE(gpu_of(third, 4) == 2);
  REQUIRE(gpu_of(third, 1) == 0);
  REQUIRE_THROWS_AS(gpu_of(third, 2), EnvironmentError);
  REQUIRE_THROWS_AS(gpu_of(Launch{}, 0), EnvironmentError);
}

TEST_CASE("ranks that share GPUs take them in turns, each under a host's name of its own") {
  const Launch third{.rank = 6, .world = 8, .local_rank = 3, .local_world = 4, .nonce = 9};
  REQUIRE(shared_gpu_of(third, 2) == 1);
  REQUIRE(shared_gpu_of(third, 1) == 0);
  REQUIRE(sharing_variables(third) ==
          std::map<std::string, std::string>{{"NCCL_HOSTID", "zeroplan-9-6"},
                                             {"NCCL_MAX_CTAS", "1"},
                                             {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}});
  REQUIRE(sharing_variables(Launch{.rank = 1}).at("NCCL_HOSTID") !=
          sharing_variables(Launch{}).at("NCCL_HOSTID"));
}
