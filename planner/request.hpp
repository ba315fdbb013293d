#pragma once
// What a person asks: some fields of a layout given, the rest left to the planner.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/legality/legality.hpp"
#include "cost_model/question/inputs.hpp"

namespace zeroplan {

/// Tokens of one optimizer step that the default global batch comes nearest to.
inline constexpr std::int64_t default_batch_tokens = 4'000'000;

/// What model and cluster were read from: a plan carries it, so that it asks the same anywhere.
struct Origin {
  std::string model_config = {};    // text of config.json; empty: the name is one of the catalog
  std::string as = {};              // model_type that it is read as; empty: its own
  std::string cluster_preset = {};  // name in the catalog
  std::string cluster_config = {};  // text of a cluster file
  Bytes margin = {};                // of each GPU, taken from its memory
};

/// Empty optionals are the planner's to choose; what is given is never changed.
struct Request {
  ModelSpec model;
  ClusterSpec cluster;
  RuntimeSpec runtime;
  std::optional<std::int64_t> tp, pp, vpp, cp, ep, etp, hsdp, micro_batch, global_batch,
      sequence_length;
  std::int64_t batch_tokens = default_batch_tokens;   // that an open global batch comes nearest to
  std::optional<std::int64_t> gradient_accumulation;  // micro-batches that make the global batch
  std::optional<ZeroStage> zero;
  std::optional<bool> sequence_parallel;
  std::optional<Schedule> schedule;
  std::optional<Recompute> recompute;
  std::optional<Precision> precision;
  std::optional<OptimizerKind> optimizer;
  std::optional<AttentionKernel> attention;
  ScoreCount scores = ScoreCount::causal;
  std::optional<Offload> offload;           // none, but where a search tries it
  std::vector<std::string> given_settings;  // of the runtime, by name: a search leaves them alone
  bool counts_gpus = false;                 // how many there are was the planner's to choose
  Origin origin = {};

  GivenSettings settings() const { return {runtime, given_settings}; }
  bool gives(std::string_view setting) const { return settings().gives(setting); }
};

/// What all plans of the request are for.
inline Question question_of(const Request& request) {
  return {request.model, request.cluster, request.runtime};
}

/// The values the planner tries for each field that was not given; one value where it was.
struct LayoutSpace {
  std::vector<std::int64_t> tp, pp, cp, ep;
  std::vector<bool> whole_experts;  // etp 1; else etp = tp
  std::vector<ZeroStage> zero;
  std::vector<Recompute> recompute;
};

LayoutSpace layout_space(const Request& request);

/// One point of a LayoutSpace.
struct LayoutChoice {
  std::int64_t tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;
  ZeroStage zero = ZeroStage::none;
  Recompute recompute = Recompute::none;
};

/// The question with no layout chosen yet: a layout of ones, and of the training what no layout
/// changes.
Problem open_problem(const Request& request);

/// Sets what follows from the degrees in `problem.layout`: dp from the GPU count, the global batch
/// where it is open, and the stage split (see complete). May be called while degrees are still
/// being chosen.
void derive(const Request& request, Problem& problem);

/// Sets the runtime's settings that follow from flags of the layout alone: what is recomputed, and
/// the knobs.
void derive_flags(const Request& request, Problem& problem);

/// Whether the request itself says how layers divide into stages, even by a setting that is off.
bool has_own_split(const Request& request);

/// Most chunks that a layout of the request can have, pp x vpp: of Megatron-Core's first and last
/// one may hold the embedding or the loss alone, where the request lets them count as a layer.
std::int64_t most_chunks(const Request& request);

/// Chunks a rank of `pp` where the request gives all chunks of the pipeline.
std::optional<std::int64_t> chunks_of_layout(const Request& request, std::int64_t pp);

/// The whole problem for one point: dp from the GPU count, defaults for what is neither given nor
/// searched, and for Megatron-Core an uneven stage split where an even one does not exist and none
/// is given.
Problem complete(const Request& request, const LayoutChoice& choice);

/// The whole problem of a layout that a search chose.
Problem problem_of(const Request& request, const Layout& layout);

/// Recompute policies that differ in what the runtime keeps.
std::vector<Recompute> recompute_choices(const Request& request);

/// What the planner tries of the request's runtime.
const Choices& choices_of(const Request& request);

/// Divisors of `value` up to `limit`, in order.
std::vector<std::int64_t> divisors_up_to(std::int64_t value, std::int64_t limit);

/// 1, 2, 4 ... up to `limit`.
std::vector<std::int64_t> powers_of_two_up_to(std::int64_t limit);

/// What was assumed in completing the request, for the report: one sentence each.
std::vector<std::string> assumptions(const Request& request, const Problem& problem);

/// What was assumed in completing the request where a search chose the layout: what it chose is not
/// assumed.
std::vector<std::string> assumptions_beside_choice(const Request& request, const Problem& problem);

/// Names of the layout fields that the planner chose.
std::vector<std::string> chosen_fields(const Request& request, const Problem& problem);

}  // namespace zeroplan
