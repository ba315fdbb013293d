// A plan that leaves as a configuration and returns is the plan that left.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "cli/compare/side.hpp"
#include "cli/out/answer.hpp"
#include "cli/request/plan_file.hpp"
#include "presets/configuration.hpp"
#include "presets/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;

namespace {

// Random options as they are typed, most of them left out.
class Typing {
 public:
  explicit Typing(unsigned seed) : random_(seed) {}

  std::string pick(std::initializer_list<const char*> list) {
    return *(list.begin() + random_() % list.size());
  }
  std::optional<std::string> maybe(unsigned one_in, std::initializer_list<const char*> list) {
    if (random_() % one_in != 0) return std::nullopt;
    return pick(list);
  }

  LayoutArguments question() {
    LayoutArguments a;
    a.model = pick({"llama3-8b", "llama3-70b", "qwen2.5-7b", "mixtral-8x7b", "deepseek-v2-lite",
                    "gpt2-xl", "opt-1.3b"});
    a.gpus = pick({"8", "16", "64"}) + "x" + pick({"H100-80GB", "A100-80GB"});
    a.runtime = pick({"megatron", "fsdp2", "deepspeed", "ddp", "nanotron"});
    a.tp = maybe(2, {"1", "2", "4"});
    a.pp = maybe(2, {"1", "2", "4"});
    a.vpp = maybe(6, {"1", "2"});
    a.cp = maybe(5, {"1", "2"});
    a.ep = maybe(8, {"1", "2"});
    a.hsdp = maybe(8, {"2", "4"});
    a.zero = maybe(2, {"0", "1", "2", "3"});
    a.micro_batch = maybe(2, {"1", "2", "4"});
    a.global_batch = maybe(2, {"128", "512"});
    a.seq = maybe(2, {"1024", "2048"});
    a.sequence_parallel = maybe(5, {"on", "off"});
    a.schedule = maybe(8, {"1f1b", "interleaved", "gpipe", "zb-v"});
    a.recompute = maybe(2, {"none", "selective", "full"});
    a.precision = maybe(3, {"bf16", "fp16", "fp8", "fp32"});
    a.optimizer = maybe(3, {"adam", "sgd", "adam8bit", "muon"});
    a.attention = maybe(8, {"flash", "unfused"});
    a.offload = maybe(6, {"none", "optimizer", "parameters"});
    return a;
  }

 private:
  std::mt19937 random_;
};

std::optional<FitAnswer> answer(const LayoutArguments& arguments) {
  try {
    return answer_of(arguments);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string typed(const LayoutArguments& a) {
  std::string text = fmt::format("{} --gpus {} --runtime {}", a.model, a.gpus, *a.runtime);
  for (const LayoutOption& option : layout_options()) {
    if (a.*option.text) text += fmt::format(" {} {}", option.flag, *(a.*option.text));
  }
  return text;
}

// A file may say of buckets what their default is among so many ranks: of both plans that is said.
std::vector<std::string> said(Problem problem) {
  MegatronSettings& set = problem.runtime.megatron;
  if (problem.runtime.kind == Runtime::megatron) {
    set.ddp_bucket_size = set.bucket_elements(problem.layout);
  }
  std::vector<std::string> lines;
  for (const TypedOption& option : options_of(problem)) {
    lines.push_back(option.flag + " " + option.value);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

void require_same(const FitAnswer& left, const FitAnswer& returned) {
  REQUIRE(said(returned.problem) == said(left.problem));
  REQUIRE(returned.problem.layout.dp == left.problem.layout.dp);
  REQUIRE(returned.estimate.verdict == left.estimate.verdict);
  REQUIRE(returned.estimate.device() == left.estimate.device());
  REQUIRE(returned.step.seconds == left.step.seconds);
}

}  // namespace

TEST_CASE("a plan that leaves as a configuration returns with what export says is missing") {
  const TemporaryFolder folder;
  Typing typing(20261123);
  int trips = 0;
  for (int i = 0; i < tests::draws(60); ++i) {
    const LayoutArguments question = typing.question();
    const auto left = answer(question);
    if (!left) continue;  // its runtime cannot
    for (const ConfigurationFormat format : formats_of(left->problem.runtime)) {
      CAPTURE(typed(question), name_of(format));
      const ExportedConfiguration file = export_configuration(left->problem, format);
      LayoutArguments back;
      back.model = question.model;
      back.gpus = question.gpus;
      back.config = folder.write("configuration", file.text);
      for (const TypedOption& option : file.unsaid) give(back, option);
      const auto returned = answer(back);
      REQUIRE(returned.has_value());
      require_same(*left, *returned);
      ++trips;
    }
  }
  REQUIRE(trips >= tests::draws(60) / 4);
}
