// What is a tracer told of a plan? Front door: tracer_words.
#include "cli/validate/tracer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/configuration.hpp"
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

// Refuses what Megatron-LM's tracer cannot do; its own arguments say whatever it can be asked.
void check_megatron(const Problem& p) {
  constexpr Tracer tracer = Tracer::megatron;
  const Layout& l = p.layout;
  refuse_unless(p.training.optimizer == OptimizerKind::adam, tracer, name_of(p.training.optimizer));
  refuse_unless(l.offload == Offload::none, tracer, "offload");
  refuse_unless(l.zero < ZeroStage::gradients, tracer, "Megatron-FSDP (--zero 2 and 3)");
  refuse_unless(!is_quantized(p.training.precision), tracer, name_of(p.training.precision));
  refuse_unless(p.runtime.megatron.pipeline_code == PipelineCode::megatron, tracer,
                "another pipeline than Megatron's own");
  refuse_unless(!p.runtime.megatron.tp_comm_overlap, tracer,
                "user buffers (tp_comm_overlap), which are no tensors of PyTorch");
  const bool alltoall = p.runtime.megatron.moe_token_dispatcher_type == TokenDispatcher::alltoall;
  refuse_unless(!p.model.moe || alltoall, tracer, "the flex dispatcher");
}

void check(Tracer tracer, const Problem& p) {
  if (tracer == Tracer::megatron) return check_megatron(p);
  const Layout& l = p.layout;
  const bool alone = l.tp == 1 && l.pp == 1 && l.cp == 1 && l.ep == 1 && l.hsdp == 0;
  refuse_unless(p.training.optimizer == OptimizerKind::adam, tracer, name_of(p.training.optimizer));
  const bool transformers = tracer == Tracer::transformers;
  refuse_unless(transformers || p.training.attention == AttentionKernel::flash, tracer,
                "unfused attention");
  refuse_unless(l.offload == Offload::none, tracer, "offload");
  const bool divides = tracer == Tracer::torchtitan || tracer == Tracer::nanotron;
  refuse_unless(divides || alone, tracer, "anything but data parallelism over all GPUs");
  refuse_unless(tracer == Tracer::torchtitan || l.recompute != Recompute::selective, tracer,
                "selective recompute");
  const Fsdp2Settings& sharded = p.runtime.fsdp2;
  const bool alike = sharded.recompute_num_layers == 0 && sharded.no_reshard_layers == 0;
  refuse_unless(tracer == Tracer::torchtitan || alike, tracer, "layers that are wrapped apart");
  const bool engine = tracer == Tracer::deepspeed;
  refuse_unless(!engine || !p.model.moe, tracer, "experts");
  refuse_unless(!engine || p.runtime.attn_implementation == AttnImplementation::sdpa, tracer,
                "the package flash-attn");
  const bool narrow = p.training.precision == Precision::bf16 ||
                      (engine && p.training.precision == Precision::fp16);
  const bool takes_fp32 = tracer == Tracer::torchtitan || p.runtime.kind == Runtime::ddp;
  const bool wide = p.training.precision == Precision::fp32 && takes_fp32;
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
  if (set.recompute_num_layers > 0) add(words, "--recompute-num-layers", set.recompute_num_layers);
  if (set.selective_rest) words.emplace_back("--selective-rest");
  if (set.no_reshard_layers > 0) add(words, "--no-reshard-layers", set.no_reshard_layers);
  const std::string every =
      set.selective_ac_layers > 0 ? std::to_string(set.selective_ac_layers) : "op";
  add(words, "--recompute",
      l.recompute == Recompute::selective ? std::string_view(every) : name_of(l.recompute));
}

void add_transformers(Words& words, const Problem& p) {
  add(words, "--zero", static_cast<std::int64_t>(p.layout.zero));
  add(words, "--recompute", name_of(p.layout.recompute));
  if (p.training.attention == AttentionKernel::unfused) {
    add(words, "--attention", name_of(p.training.attention));
  } else if (p.runtime.attn_implementation != AttnImplementation::sdpa) {
    add(words, "--attention", name_of(p.runtime.attn_implementation));
  }
  const bool replicas = p.runtime.kind == Runtime::ddp;
  if (!replicas) return add(words, "--logits", name_of(p.runtime.fsdp2.logits));
  if (p.runtime.ddp.gradient_as_bucket_view) words.emplace_back("--gradient-as-bucket-view");
  if (p.training.precision == Precision::fp32) add(words, "--precision", "fp32");
}

void set(Words& words, std::string_view key, std::int64_t value) {
  add(words, "--set", fmt::format("{}={}", key, value));
}

// The layout's choices stand over the runtime's settings.
void add_deepspeed(Words& words, const Problem& p) {
  const Layout& l = p.layout;
  const DeepspeedSettings& with = p.runtime.deepspeed;
  const bool plain = with.hpz_partition_size <= 1 && with.mics_shard_size == 0 &&
                     !with.quantized_weights && !with.quantized_gradients;
  refuse_unless(plain, Tracer::deepspeed, "ZeRO++ or MiCS");
  add(words, "--zero", static_cast<std::int64_t>(l.zero));
  add(words, "--recompute", name_of(l.recompute));
  add(words, "--precision", name_of(p.training.precision));
  if (with.fp32_grad_accumulation) add(words, "--set", "data_types.grad_accum_dtype=fp32");
  if (l.zero == ZeroStage::none) return;
  const bool overlaps = with.overlap_comm || l.overlap == Overlap::gradients;
  set(words, "reduce_bucket_size", l.reduce_bucket > 0 ? l.reduce_bucket : with.reduce_bucket_size);
  add(words, "--set", overlaps ? "overlap_comm=true" : "overlap_comm=false");
  if (l.zero != ZeroStage::parameters) return;
  set(words, "stage3_prefetch_bucket_size", with.stage3_prefetch_bucket_size);
  set(words, "stage3_max_live_parameters", with.stage3_max_live_parameters);
  set(words, "stage3_max_reuse_distance", with.stage3_max_reuse_distance);
  set(words, "sub_group_size", with.sub_group_size);
}

// Ranks of tensor parallelism send beside their products where each has a part of the tokens.
void add_nanotron(Words& words, const Problem& p, std::int64_t stage) {
  const Layout& l = p.layout;
  const NanotronSettings& with = p.runtime.nanotron;
  add(words, "--tp", l.tp);
  add(words, "--pp", l.pp);
  add(words, "--stage", stage);
  add(words, "--zero", static_cast<std::int64_t>(l.zero));
  add(words, "--engine", l.schedule == Schedule::gpipe ? "afab" : "1f1b");
  add(words, "--tp-mode", l.sequence_parallel || l.tp == 1 ? "REDUCE_SCATTER" : "ALL_REDUCE");
  add(words, "--recompute", name_of(l.recompute));
  if (!with.tp_recompute_allgather) words.emplace_back("--keep-gathered");
  if (with.z_loss) words.emplace_back("--z-loss");
  if (!with.log_attn_probs) words.emplace_back("--no-log");
}

// What `export` writes, as one word.
Words megatron_words(const Problem& p, std::int64_t stage) {
  Words words{p.model.name};
  add(words, "--gpus", p.cluster.gpus);
  add(words, "--stage", stage);
  std::string text = export_configuration(p, ConfigurationFormat::megatron).text;
  std::replace(text.begin(), text.end(), '\n', ' ');
  words.push_back("--megatron=" + text);
  return words;
}

}  // namespace

Runtime runtime_of(Tracer tracer) {
  switch (tracer) {
    case Tracer::megatron:
      return Runtime::megatron;
    case Tracer::deepspeed:
      return Runtime::deepspeed;
    case Tracer::nanotron:
      return Runtime::nanotron;
    case Tracer::torchtitan:
    case Tracer::transformers:
      break;
  }
  return Runtime::fsdp2;
}

bool runs(Tracer tracer, Runtime runtime) {
  const bool replicas = tracer == Tracer::transformers && runtime == Runtime::ddp;
  return replicas || runtime == runtime_of(tracer);
}

Tracer read_tracer(const std::string& name) {
  const auto& known = names<Tracer>();
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return static_cast<Tracer>(found - known.begin());
  const std::vector<std::string> all(known.begin(), known.end());
  throw InputError(fmt::format(
      "--with {}: must be torchtitan, transformers, megatron, deepspeed or nanotron; nearest is {}",
      in_quotes(name), nearest(name, all)));
}

std::vector<std::string> tracer_words(Tracer tracer,
                                      const Problem& problem,
                                      std::int64_t stage,
                                      std::int64_t rank) {
  check(tracer, problem);
  if (tracer == Tracer::megatron) return megatron_words(problem, stage);
  Words words = shared_words(problem);
  switch (tracer) {
    case Tracer::torchtitan:
      add_torchtitan(words, problem, stage);
      break;
    case Tracer::transformers:
      add_transformers(words, problem);
      break;
    case Tracer::deepspeed:
      add(words, "--rank", rank);
      add_deepspeed(words, problem);
      break;
    case Tracer::nanotron:
      add_nanotron(words, problem, stage);
      break;
    case Tracer::megatron:
      break;
  }
  return words;
}

}  // namespace zeroplan
