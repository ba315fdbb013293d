// What did the launcher say? Front door: read_launch.
#include "validator/launch/launch.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "gpu_probe/environment_error.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t most_ranks = 1'000'000;
constexpr std::int64_t last_port = 65535;

// torchrun's own store listens on MASTER_PORT; rank 0 of ours takes the next.
constexpr std::int64_t beside_store = 1;
constexpr std::int64_t usual_port = 29500;  // torchrun's default

std::int64_t read_number(std::string_view name,
                         std::string_view text,
                         std::int64_t least,
                         std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    throw EnvironmentError(
        fmt::format("{}='{}': must be a whole number from {} to {}", name, text, least, most));
  }
  return value;
}

// The variables of one launcher: all of the names it sets are needed once one is there.
class Reader {
 public:
  Reader(const Variables& variables, std::string_view launcher)
      : variables_(variables), launcher_(launcher) {}

  bool has(std::string_view name) const { return variables_(name).has_value(); }
  std::string text(std::string_view name, std::string_view otherwise = "") const {
    return variables_(name).value_or(std::string(otherwise));
  }
  std::int64_t number(std::string_view name, std::int64_t least, std::int64_t most) const {
    const auto value = variables_(name);
    if (!value) {
      throw EnvironmentError(fmt::format(
          "{} is not set, though this process looks as if {} had started it", name, launcher_));
    }
    return read_number(name, *value, least, most);
  }

 private:
  const Variables& variables_;
  std::string_view launcher_;
};

// FNV-1a: the same in every rank, whatever the standard library.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

struct Names {
  std::string_view launcher, rank, world, local_rank, local_world;
};

Launch read_ranks(const Reader& reader, const Names& names) {
  Launch launch{.launcher = std::string(names.launcher),
                .world = reader.number(names.world, 1, most_ranks)};
  launch.rank = reader.number(names.rank, 0, launch.world - 1);
  launch.local_world = reader.number(names.local_world, 1, launch.world);
  launch.local_rank = reader.number(names.local_rank, 0, launch.local_world - 1);
  return launch;
}

Launch read_torchrun(const Variables& variables) {
  const Reader reader(variables, "torchrun");
  Launch launch =
      read_ranks(reader, {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  launch.address = reader.text("MASTER_ADDR", "127.0.0.1");
  launch.port = static_cast<std::uint16_t>(
      reader.number("MASTER_PORT", 1, last_port - beside_store) + beside_store);
  launch.nonce = digest(reader.text("TORCHELASTIC_RUN_ID") + ':' + reader.text("MASTER_PORT"));
  return launch;
}

// Ranks on several nodes need an address that the launcher does not give.
void require_address(const Variables& variables, const Launch& launch) {
  const bool several_nodes = launch.local_world < launch.world;
  if (!several_nodes || variables("MASTER_ADDR") || variables("ZEROPLAN_ADDRESS")) return;
  throw EnvironmentError(
      fmt::format("{} started {} ranks on several nodes, but does not say where rank 0 is; set "
                  "ZEROPLAN_ADDRESS (or MASTER_ADDR) to its host in every rank",
                  launch.launcher, launch.world));
}

Launch read_open_mpi(const Variables& variables) {
  const Reader reader(variables, "Open MPI");
  Launch launch = read_ranks(reader, {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  require_address(variables, launch);
  launch.address = reader.text("MASTER_ADDR", "127.0.0.1");
  launch.nonce = digest(reader.text("PMIX_NAMESPACE", reader.text("OMPI_MCA_ess_base_jobid")));
  // Jobs that share a node get ports of their own.
  constexpr std::uint64_t spread = 2000;
  launch.port = static_cast<std::uint16_t>(usual_port + beside_store +
                                           static_cast<std::int64_t>(launch.nonce % spread));
  return launch;
}

// SLURM_TASKS_PER_NODE is "8(x2),4": how many the nodes run, one after another. This process's node
// is SLURM_NODEID.
std::int64_t tasks_of_node(std::string_view list, std::int64_t node) {
  std::int64_t before = 0;
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest = entry.size() == rest.size() ? "" : rest.substr(entry.size() + 1);
    const std::size_t open = entry.find("(x");
    const std::int64_t tasks =
        read_number("SLURM_TASKS_PER_NODE", entry.substr(0, open), 1, most_ranks);
    const std::string_view times =
        open == entry.npos ? "1" : entry.substr(open + 2, entry.size() - open - 3);
    before += read_number("SLURM_TASKS_PER_NODE", times, 1, most_ranks);
    if (node < before) return tasks;
  }
  throw EnvironmentError(
      fmt::format("SLURM_TASKS_PER_NODE='{}' does not list node {}", list, node));
}

Launch read_slurm(const Variables& variables) {
  const Reader reader(variables, "srun");
  Launch launch{.launcher = "Slurm", .world = reader.number("SLURM_NTASKS", 1, most_ranks)};
  launch.rank = reader.number("SLURM_PROCID", 0, launch.world - 1);
  launch.local_rank = reader.number("SLURM_LOCALID", 0, launch.world - 1);
  const std::string per_node =
      reader.text("SLURM_STEP_TASKS_PER_NODE", reader.text("SLURM_TASKS_PER_NODE", "1"));
  launch.local_world = tasks_of_node(per_node, reader.number("SLURM_NODEID", 0, most_ranks));
  const std::string nodes = reader.text("SLURM_STEP_NODELIST", reader.text("SLURM_JOB_NODELIST"));
  launch.address = reader.has("MASTER_ADDR") ? reader.text("MASTER_ADDR") : first_host(nodes);
  const std::int64_t job = reader.number("SLURM_JOB_ID", 0, std::int64_t{1} << 40);
  const std::int64_t step = reader.number("SLURM_STEP_ID", 0, std::int64_t{1} << 40);
  launch.nonce = digest(fmt::format("{}.{}", job, step));
  constexpr std::int64_t spread = 10'000;
  launch.port = static_cast<std::uint16_t>(20'000 + (job + step) % spread);
  return launch;
}

Launch read_launcher(const Variables& variables) {
  const auto has = [&](std::string_view name) { return variables(name).has_value(); };
  if (has("RANK") || has("WORLD_SIZE")) return read_torchrun(variables);
  if (has("OMPI_COMM_WORLD_RANK")) return read_open_mpi(variables);
  // Inside a batch script SLURM_PROCID is 0 and SLURM_NTASKS that of the job, but it is no task:
  // only srun sets the step.
  if (has("SLURM_PROCID") && has("SLURM_STEP_ID")) return read_slurm(variables);
  return {};
}

}  // namespace

Variables process_variables() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Launch read_launch(const Variables& variables) {
  Launch launch = read_launcher(variables);
  if (const auto address = variables("ZEROPLAN_ADDRESS")) launch.address = *address;
  if (const auto port = variables("ZEROPLAN_PORT")) {
    launch.port = static_cast<std::uint16_t>(read_number("ZEROPLAN_PORT", *port, 1, last_port));
  }
  if (const auto nonce = variables("ZEROPLAN_NONCE")) launch.nonce = digest(*nonce);
  return launch;
}

std::int64_t gpu_of(const Launch& launch, std::int64_t visible) {
  if (launch.local_rank < visible) return launch.local_rank;
  if (visible == 1) return 0;
  throw EnvironmentError(fmt::format("rank {} wants GPU {} of its node, which has {}", launch.rank,
                                     launch.local_rank, visible));
}

std::int64_t shared_gpu_of(const Launch& launch, std::int64_t visible) {
  return launch.local_rank % visible;
}

std::map<std::string, std::string> sharing_variables(const Launch& launch) {
  return {{"NCCL_HOSTID", fmt::format("zeroplan-{}-{}", launch.nonce, launch.rank)},
          {"NCCL_MULTI_RANK_GPU_ENABLE", "1"},
          {"NCCL_MAX_CTAS", "1"}};
}

std::string first_host(std::string_view node_list) {
  const auto fail = [&] {
    throw EnvironmentError(
        fmt::format("the node list '{}' names no first host; set ZEROPLAN_ADDRESS", node_list));
  };
  // What stands before the first comma outside brackets.
  std::size_t end = 0;
  int depth = 0;
  while (end < node_list.size() && (depth > 0 || node_list[end] != ',')) {
    if (node_list[end] == '[') ++depth;
    if (node_list[end] == ']') --depth;
    ++end;
  }
  if (depth != 0 || end == 0) fail();
  // The first number of each "[003-005,9]"; a name may hold several.
  std::string host;
  std::string_view rest = node_list.substr(0, end);
  while (!rest.empty()) {
    const std::size_t open = rest.find('[');
    host += rest.substr(0, open);
    if (open == rest.npos) break;
    const std::size_t close = rest.find(']', open);
    const std::string_view inside = rest.substr(open + 1, close - open - 1);
    const std::string_view number = inside.substr(0, inside.find_first_of(",-"));
    if (number.empty()) fail();
    host += number;
    rest = rest.substr(close + 1);
  }
  return host;
}

}  // namespace zeroplan
