// Is this still the question that was asked before? Front door: OneQuestion.
#include "cost_model/remember/one_question.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace zeroplan {
namespace {

// The number of GPUs and the name that tells it are the layout's.
bool are_alike(const ClusterSpec& a, const ClusterSpec& b) {
  return a.gpu == b.gpu && a.gpus_per_node == b.gpus_per_node && a.intra_node == b.intra_node &&
         a.intra_node_bandwidth == b.intra_node_bandwidth &&
         a.inter_node_bandwidth == b.inter_node_bandwidth && a.network_cards == b.network_cards &&
         a.measured == b.measured && a.overheads == b.overheads;
}

RuntimeSpec without_what_layouts_decide(RuntimeSpec runtime) {
  MegatronSettings& m = runtime.megatron;
  m.recompute_method = {};
  m.recompute_num_layers = 0;
  m.recompute_modules = 0;
  m.overlap_grad_reduce = m.overlap_param_gather = false;
  m.account_for_embedding_in_pipeline_split = m.account_for_loss_in_pipeline_split = false;
  m.decoder_first_pipeline_num_layers = m.decoder_last_pipeline_num_layers = 0;
  runtime.deepspeed.overlap_comm = false;
  runtime.deepspeed.reduce_bucket_size = 0;
  runtime.fsdp2.reshard_after_forward = {};
  runtime.fsdp2.loss_chunks = 0;
  return runtime;
}

[[noreturn]] void refuse(const ModelSpec& model, std::string_view what) {
  throw std::logic_error(
      fmt::format("what is remembered of {} was asked about another {}: make a Remembered for it",
                  model.name, what));
}

}  // namespace

OneQuestion::Settings OneQuestion::settings_of(const Problem& p) {
  const Layout& l = p.layout;
  const MegatronSettings& m = p.runtime.megatron;
  Settings settings;
  const auto set = [&](std::size_t place, bool decided, auto value) {
    if (!decided) settings[place] = static_cast<std::int64_t>(value);
  };
  const bool overlap = l.overlap != Overlap::as_set;
  set(0, l.recompute_layers > 0, m.recompute_method);
  set(1, l.recompute_layers > 0, m.recompute_num_layers);
  set(2, l.recompute_modules > 0, m.recompute_modules);
  set(3, overlap, 2 * m.overlap_grad_reduce + m.overlap_param_gather);
  set(4, overlap, p.runtime.deepspeed.overlap_comm);
  set(5, l.reduce_bucket > 0, p.runtime.deepspeed.reduce_bucket_size);
  set(6, l.reshards_all, p.runtime.fsdp2.reshard_after_forward);
  set(7, l.loss_chunks > 0, p.runtime.fsdp2.loss_chunks);
  return settings;
}

void OneQuestion::require(const Problem& problem) {
  if (!(problem.model == model_)) refuse(model_, "model");
  const RuntimeSpec runtime = without_what_layouts_decide(problem.runtime);
  if (!asked_) asked_ = {problem.cluster, runtime};
  if (!are_alike(asked_->cluster, problem.cluster)) refuse(model_, "GPU, or other links");
  if (asked_->runtime.kind != runtime.kind) refuse(model_, "runtime");
  if (!(asked_->runtime == runtime)) refuse(model_, "setting of its runtime");
  const Settings settings = settings_of(problem);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (!settings[i]) continue;
    if (!settings_[i]) settings_[i] = settings[i];
    if (settings_[i] != settings[i]) refuse(model_, "setting of its runtime");
  }
}

}  // namespace zeroplan
