// Is this still the question that was asked before? Front door: require_same.
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
         a.measured == b.measured && a.overheads == b.overheads && a.fabric == b.fabric;
}

// The settings by which a planner tells Megatron-Core how it has split the layers.
void take_split(const MegatronSettings& from, MegatronSettings& to) {
  to.account_for_embedding_in_pipeline_split = from.account_for_embedding_in_pipeline_split;
  to.account_for_loss_in_pipeline_split = from.account_for_loss_in_pipeline_split;
  to.decoder_first_pipeline_num_layers = from.decoder_first_pipeline_num_layers;
  to.decoder_last_pipeline_num_layers = from.decoder_last_pipeline_num_layers;
}

[[noreturn]] void refuse(const ModelSpec& model, std::string_view what) {
  throw std::logic_error(
      fmt::format("what is remembered of {} was asked about another {}: make an Evaluator for it",
                  model.name, what));
}

}  // namespace

void require_same(const OnlyFor& question, const Problem& problem) {
  const RuntimeSpec& asked = question.asked();
  if (!(problem.model == question.model())) refuse(question.model(), "model");
  if (!are_alike(question.cluster(), problem.cluster)) {
    refuse(question.model(), "GPU, or other links");
  }
  if (asked.kind != problem.runtime.kind) refuse(question.model(), "runtime");
  RuntimeSpec expected = asked;
  code_of(asked).take_layout(asked, problem.layout, expected);
  take_split(problem.runtime.megatron, expected.megatron);
  if (!(expected == problem.runtime)) refuse(question.model(), "setting of its runtime");
}

}  // namespace zeroplan
