// What is a tracer told of a plan? Front door: tracer_words.
#include "cli/validate/tracer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

using Words = std::vector<std::string>;

void refuse_unless(bool possible, Tracer tracer, std::string_view what) {
  if (!possible) {
    throw InputError(fmt::format("--with {}: its tracer cannot do {}", name_of(tracer), what));
  }
}

void check(Tracer tracer, const Problem& p) {
  const Layout& l = p.layout;
  const bool alone = l.tp == 1 && l.pp == 1 && l.cp == 1 && l.ep == 1 && l.hsdp == 0;
  refuse_unless(p.training.optimizer == OptimizerKind::adam, tracer, name_of(p.training.optimizer));
  refuse_unless(p.training.attention == AttentionKernel::flash, tracer, "unfused attention");
  refuse_unless(l.offload == Offload::none, tracer, "offload");
  refuse_unless(tracer == Tracer::torchtitan || alone, tracer,
                "anything but data parallelism over all GPUs");
  refuse_unless(tracer != Tracer::transformers || l.recompute != Recompute::selective, tracer,
                "selective recompute");
  const bool narrow = p.training.precision == Precision::bf16;
  const bool wide = p.training.precision == Precision::fp32 && tracer == Tracer::torchtitan;
  refuse_unless(narrow || wide, tracer, name_of(p.training.precision));
}

Words shared_words(const Problem& p) {
  return {p.model.name,
          "--gpus",
          std::to_string(p.cluster.gpus),
          "--layers",
          std::to_string(p.model.layers),
          "--seq",
          std::to_string(p.training.sequence_length),
          "--micro-batch",
          std::to_string(p.layout.micro_batch),
          "--steps",
          std::to_string(micro_batches(p))};
}

void add(Words& words, std::string_view option, std::int64_t value) {
  words.emplace_back(option);
  words.push_back(std::to_string(value));
}

void add(Words& words, std::string_view option, std::string_view value) {
  words.emplace_back(option);
  words.emplace_back(value);
}

void add_torchtitan(Words& words, const Problem& p, std::int64_t stage) {
  const Layout& l = p.layout;
  const Fsdp2Settings& set = p.runtime.fsdp2;
  add(words, "--tp", l.tp);
  add(words, "--cp", l.cp);
  add(words, "--pp", l.pp);
  add(words, "--vpp", l.vpp);
  add(words, "--ep", l.ep);
  add(words, "--stage", stage);
  if (l.hsdp > 0) add(words, "--replicas", l.dp / l.hsdp);
  if (p.training.precision == Precision::fp32) add(words, "--computed", "fp32");
  if (!set.loss_parallel) words.emplace_back("--whole-logits");
  if (set.disable_cuda_graphs == RecipeSwitch::on) words.emplace_back("--no-graphs");
  const bool always = set.reshard_after_forward == Reshard::always || l.reshards_all;
  add(words, "--reshard",
      l.zero == ZeroStage::gradients ? "never" : (always ? "always" : "default"));
  const std::string every =
      set.selective_ac_layers > 0 ? std::to_string(set.selective_ac_layers) : "op";
  add(words, "--recompute",
      l.recompute == Recompute::selective ? std::string_view(every) : name_of(l.recompute));
}

}  // namespace

Tracer read_tracer(const std::string& name) {
  const auto& known = names<Tracer>();
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return static_cast<Tracer>(found - known.begin());
  const std::vector<std::string> all(known.begin(), known.end());
  throw InputError(fmt::format("--with {}: must be torchtitan or transformers; nearest is {}",
                               in_quotes(name), nearest(name, all)));
}

std::vector<std::string> tracer_words(Tracer tracer, const Problem& problem, std::int64_t stage) {
  check(tracer, problem);
  Words words = shared_words(problem);
  switch (tracer) {
    case Tracer::torchtitan:
      add_torchtitan(words, problem, stage);
      break;
    case Tracer::transformers:
      add(words, "--zero", static_cast<std::int64_t>(problem.layout.zero));
      add(words, "--recompute", name_of(problem.layout.recompute));
      add(words, "--logits", name_of(problem.runtime.fsdp2.logits));
      break;
  }
  return words;
}

}  // namespace zeroplan
