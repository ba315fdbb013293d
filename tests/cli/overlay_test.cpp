#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/cli/kineto.hpp"
#include "tests/source_dir.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

// Two micro-batches, which timeline tells all of.
std::string plan_of(const std::string& runtime, int dp) {
  return "llama3-8b --gpus 8xH100-80GB --micro-batch 1 --seq 2048 --global-batch " +
         std::to_string(2 * dp) + " --runtime " + runtime;
}
const std::string plans[] = {plan_of("megatron --pp 1 --tp 2 --zero 1", 4),
                             plan_of("fsdp2 --pp 1 --zero 3", 8),
                             plan_of("ddp --pp 1 --recompute full", 8),
                             plan_of("deepspeed --pp 1 --zero 2", 8),
                             plan_of("zeroplan --pp 1 --zero 3", 8),
                             plan_of("nanotron --pp 1 --tp 2 --zero 1", 4),
                             plan_of("megatron --pp 2 --tp 2 --zero 1 --stage 1", 2)};

double as_predicted(const Json&) {
  return 1;
}

// A plan, what timeline tells of it, and traces made of that.
class Profiled {
 public:
  explicit Profiled(std::string plan)
      : plan_(std::move(plan)), timeline_(tests::answer("timeline " + plan_)) {
    const std::string whole = plan_.substr(0, plan_.find(" --stage"));
    step_ = tests::answer("fit " + whole).at("step").at("seconds");
  }

  std::string trace(const tests::Slower& slower, const std::vector<double>& lengths = {1}) const {
    return folder_.write("trace.json",
                         tests::kineto_trace(timeline_, step_, slower, lengths).dump());
  }
  Json overlay(const tests::Slower& slower, const std::vector<double>& lengths = {1}) const {
    return tests::answer("overlay " + plan_ + " --trace " + trace(slower, lengths));
  }

  const std::string& plan() const { return plan_; }
  double step() const { return step_; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
  std::string plan_;
  Json timeline_;
  double step_ = 0;
};

}  // namespace

TEST_CASE("a trace of what was predicted agrees, kernel by kernel and call by call") {
  for (const std::string& plan : plans) {
    const Profiled profiled(plan);
    // Steps that begin with a kernel are told apart by it; a later stage's wait first.
    const bool begins = plan.find("--stage") == std::string::npos;
    const Json overlay =
        begins ? profiled.overlay(as_predicted, {1.3, 1, 0.8}) : profiled.overlay(as_predicted);
    CAPTURE(plan, overlay.dump(1));
    CHECK(overlay.at("verdict") == "agrees");
    CHECK(overlay.at("step").at("name") == (begins ? "ProfilerStep#6" : "ProfilerStep#5"));
    CHECK(overlay.at("step").at("steps") == (begins ? 3 : 1));
    const double measured = overlay.at("step").at("measured_seconds");
    CHECK(std::abs(measured / profiled.step() - 1) < 1e-6);
    for (const Json& row : overlay.at("rows")) {
      CAPTURE(row.dump());
      if (row.at("kind") == "idle") continue;
      REQUIRE(row.at("measured").is_object());
      REQUIRE(row.at("predicted").is_object());
      CHECK(row.at("measured").at("kernels") == row.at("predicted").at("kernels"));
      CHECK(std::abs(row.at("ratio").get<double>() - 1) < 1e-6);
    }
  }
}

TEST_CASE("what of a step is exposed and idle is seen alike in a trace and in the prediction",
          "[release]") {
  for (const std::string& plan : plans) {
    const Profiled profiled(plan);
    const Json overlay = profiled.overlay(as_predicted);
    for (const Json& row : overlay.at("rows")) {
      CAPTURE(plan, row.dump());
      CHECK(std::abs(row.at("difference_seconds").get<double>()) < 1e-6 * profiled.step());
      if (row.at("kind") != "collectives") continue;
      CHECK(std::abs(row.at("measured").at("exposed_seconds").get<double>() -
                     row.at("predicted").at("exposed_seconds").get<double>()) <
            1e-6 * profiled.step());
    }
  }
}

TEST_CASE("a kind of work that takes half as long again is named", "[release]") {
  for (const std::string& plan : {plans[0], plans[1], plans[3]}) {
    const Profiled profiled(plan);
    for (const std::string kind : {"products", "attention", "memory-bound"}) {
      const Json overlay = profiled.overlay([&](const Json& event) {
        const bool slow = event.at("kind") == "kernel" &&
                          tests::kind_of_kernel(event.at("name").get<std::string>()) == kind;
        return slow ? 1.5 : 1;
      });
      CAPTURE(plan, kind, overlay.dump(1));
      CHECK(overlay.at("rows").at(0).at("name") == kind);
      CHECK(std::abs(overlay.at("rows").at(0).at("ratio").get<double>() - 1.5) < 1e-6);
      CHECK(overlay.at("off_most").get<std::string>().starts_with("off most: " + kind));
    }
    const Json overlay = profiled.overlay([](const Json& event) {
      return event.at("kind") == "collective" && event.at("name") == "reduce-scatter" ? 1.5 : 1;
    });
    CAPTURE(plan, overlay.dump(1));
    CHECK(overlay.at("off_most").get<std::string>().starts_with("off most: reduce-scatter in "));
  }
}

TEST_CASE("a plan of fit is a MODEL of overlay, and the exit code says whether the step agrees") {
  const Profiled profiled(plans[1]);
  const std::string plan =
      profiled.folder().write("plan.json", tests::zeroplan("fit " + plans[1] + " --json").output);
  const auto exit_of = [&](double times) {
    const std::string trace = profiled.trace([&](const Json&) { return times; }, {times});
    return tests::zeroplan("overlay " + plan + " --trace " + trace).exit_code;
  };
  CHECK(exit_of(1) == 0);
  CHECK(exit_of(2) == 1);
}

TEST_CASE("fit on a calibrated cluster takes what was measured") {
  // Long sequences: where the host is the slower one, slower kernels cost nothing.
  for (const std::string& short_plan : {plans[1], plans[4], plans[5]}) {
    std::string plan = short_plan;
    plan.replace(plan.find("--seq 2048"), 10, "--seq 8192 --recompute full");
    const Profiled profiled(plan);
    const std::string trace = profiled.trace([](const Json& event) {
      const std::string kind = event.at("kind");
      if (kind != "kernel") return kind == "collective" ? 1.4 : 1.2;
      return tests::kind_of_kernel(event.at("name").get<std::string>()) == "memory-bound" ? 1.2
                                                                                          : 1.3;
    });
    const std::string machine = (profiled.folder().path() / "machine.json").string();
    const Json overlay =
        tests::answer("overlay " + plan + " --trace " + trace + " --calibrate " + machine);
    const double measured = overlay.at("step").at("measured_seconds");
    std::string asked = plan;
    asked.replace(asked.find("--gpus 8xH100-80GB"), 18, "--cluster " + machine);
    const double fitted = tests::answer("fit " + asked).at("step").at("seconds");
    const Json& calibration = overlay.at("calibration");
    CAPTURE(plan, measured, fitted, profiled.step(), calibration.dump(1));
    CHECK(std::abs(fitted / calibration.at("step_seconds").get<double>() - 1) < 1e-9);
    CHECK(std::abs(profiled.step() / measured - 1) > 0.15);
    CHECK(std::abs(fitted / measured - 1) < 0.03);
    CHECK(tests::zeroplan("sweep llama3-8b --top 1 --cluster " + machine).exit_code == 0);
  }
}

TEST_CASE("traces that PyTorch wrote on a CPU show its operators") {
  const std::string folder = source_dir() + "/tests/reference/traces/";
  const auto kernels = [](const Json& overlay, const std::string& name) {
    for (const Json& row : overlay.at("rows")) {
      if (row.at("name") != name || row.at("measured").is_null()) continue;
      return row.at("measured").at("kernels").get<std::int64_t>();
    }
    return std::int64_t{0};
  };
  const Json step = tests::answer("overlay " + plans[2] + " --trace " + folder + "cpu_step.json");
  CHECK(step.at("verdict") == "other_device");
  CHECK(step.at("step").at("steps") == 3);
  // Five linears, each with a forward product and two gradients.
  CHECK(kernels(step, "products") == 15);
  CHECK(kernels(step, "attention") > 0);
  CHECK(kernels(step, "optimizer") > 0);
  const Json ddp = tests::answer("overlay " + plans[2] + " --trace " + folder + "cpu_ddp.json");
  CHECK(ddp.at("step").at("steps") == 2);
  CHECK(kernels(ddp, "all-reduce in dp of 8") == 1);
  CHECK(ddp.dump().find("the trace is of 2 ranks and the plan of 8") != std::string::npos);
  tests::require_refused(
      "overlay " + plans[2] + " --calibrate /tmp/x.json --trace " + folder + "cpu_step.json",
      "needs kernels of a device");
}

TEST_CASE("a snapshot that timeline wrote holds what is predicted, size by size") {
  for (const std::string& plan : {plans[0], plans[2]}) {
    const Profiled profiled(plan);
    const std::string snapshot = (profiled.folder().path() / "memory.pickle").string();
    REQUIRE(tests::zeroplan("timeline " + plan + " --snapshot " + snapshot).exit_code <= 1);
    const Json memory = tests::answer("overlay " + plan + " --trace " +
                                      profiled.trace(as_predicted) + " --snapshot " + snapshot)
                            .at("memory");
    CAPTURE(plan, memory.dump(1).substr(0, 3000));
    CHECK(memory.at("contradicting_events") == 0);
    // A block of which less than 1 MiB is left over is not cut: the snapshot has it whole.
    constexpr std::int64_t uncut = 1 << 20;
    std::int64_t off = 0;
    for (const Json& size : memory.at("sizes"))
      off += size.at("difference_bytes").get<std::int64_t>();
    CHECK(std::abs(off) <= uncut);
    for (const char* category : {"parameters", "gradients", "optimizer_states", "workspace"}) {
      const Json& row = memory.at("categories").at(category);
      CHECK(row.at("held_bytes") == row.at("predicted_bytes"));
    }
  }
}

TEST_CASE("a snapshot in the form that PyTorch documents is read in each protocol of pickle") {
  const Profiled profiled(plans[2]);
  const std::string trace = profiled.trace(as_predicted);
  for (const std::string protocol : {"2", "3", "4", "5"}) {
    const Json memory =
        tests::answer("overlay " + plans[2] + " --trace " + trace + " --snapshot " + source_dir() +
                      "/tests/reference/traces/snapshot_" + protocol + ".pickle")
            .at("memory");
    CAPTURE(protocol);
    // Six blocks of 4 MiB stay; at the end of a backward pass 2 + 2 + 4 more.
    CHECK(memory.at("measured_peak_bytes") == std::int64_t{32} << 20);
    CHECK(memory.at("reserved_bytes") == std::int64_t{36} << 20);
    std::int64_t held = 0;
    for (const Json& size : memory.at("sizes")) held += size.at("measured").get<std::int64_t>();
    CHECK(held == 9);
    CHECK(memory.dump().find("adam (train.py:40)") != std::string::npos);
  }
}
