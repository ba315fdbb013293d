// What does context parallelism send and hold around attention? Front door: ContextCalls.
#include "cost_model/runtime/megatron/context.hpp"

namespace zeroplan {

ContextCalls::ContextCalls(BlockWriter& w, const MegatronShape& s)
    : w_(w), cp_(s.problem.layout.cp), transport_(s.settings().cp_comm_type) {
  const bool latent = s.problem.model.attention.mla.has_value();
  keys_ = s.features(s.token.key_value + (latent ? s.token.output : s.token.key_value));
  queries_ = s.features(s.token.query);
  output_ = s.features(s.token.output);
}

void ContextCalls::call(Collective what, Bytes payload, std::int64_t times) const {
  if (cp_ > 1) w_.call("cp", what, payload, times);
}

void ContextCalls::send_forward() const {
  switch (transport_) {
    case ContextTransport::p2p:
      return call(Collective::send_recv, keys_, cp_ - 1);
    case ContextTransport::all_gather:
      return call(Collective::all_gather, cp_ * keys_);
    case ContextTransport::a2a:
      call(Collective::all_to_all, keys_ + queries_);
      call(Collective::all_to_all, output_);
  }
}

void ContextCalls::send_backward() const {
  switch (transport_) {
    case ContextTransport::p2p:
      return call(Collective::send_recv, 2 * keys_, cp_ - 1);
    case ContextTransport::all_gather:
      call(Collective::all_gather, cp_ * keys_);
      return call(Collective::reduce_scatter, cp_ * keys_);
    case ContextTransport::a2a:
      call(Collective::all_to_all, output_);
      call(Collective::all_to_all, keys_ + queries_);
  }
}

ContextTensors ContextCalls::forward() const {
  ContextTensors t;
  if (is_ring()) {
    t.kernel.push_back(w_.temporary("keys and values of other ranks", (cp_ - 1) * keys_));
    t.half.push_back(w_.temporary("own keys and values", keys_));
    const Bytes halves{(cp_ - 1) * output_.count() / 2};
    t.kernel.push_back(w_.temporary("outputs by part", output_ + halves));
  } else if (cp_ > 1 && transport_ == ContextTransport::all_gather) {
    t.kernel.push_back(w_.temporary("keys and values of the whole sequence", cp_ * keys_));
  }
  send_forward();
  return t;
}

Tensor ContextCalls::sum_of_parts() const {
  return w_.temporary("sum of outputs in fp32", is_ring() ? 2 * output_ : Bytes{});
}

ContextTensors ContextCalls::backward() const {
  ContextTensors t;
  if (!is_ring()) return t;
  const std::string_view name = "keys, values and their gradients in a ring";
  t.half.push_back(w_.temporary("sum of query gradients", queries_));
  t.half.push_back(w_.temporary(name, 2 * keys_));
  t.kernel.push_back(w_.temporary(name, 2 * keys_));
  return t;
}

}  // namespace zeroplan
