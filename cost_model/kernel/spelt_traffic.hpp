#pragma once
// What the layers of Transformers move, written in PyTorch's operators.

#include "cost_model/kernel/layer_traffic.hpp"

namespace zeroplan {

/// The parts of a layer that are spelt out there.
enum class SpeltPart { norm, rotation, activation, gelu, squared_relu, another_projection };

/// Whether Transformers writes out the GELU of this model, whose
/// configuration says gelu_new unless told otherwise (activations.py NewGELUActivation).
bool spells_gelu(const ModelSpec& model);

/// Appends the kernels of one of them, each of as many bytes as the mean of its pass. `tensor`:
/// bytes of what it works on, in the compute format; of another projection beside the first, its
/// input. `autocast`: the hidden state is fp32, and so are cosines and sines. Sources:
/// huggingface/transformers 5.24 models/llama/modeling_llama.py LlamaRMSNorm, apply_rotary_pos_emb,
/// LlamaMLP; PyTorch 2.15 tools/autograd/derivatives.yaml. A recorded step has the same operators
/// (tests/reference/recorded/llama2-deepspeed.json).
void add_spelt(
    std::vector<Traffic>& out, Module module, SpeltPart part, Bytes tensor, bool autocast = false);

/// Whether Transformers writes out what lies between the products of this model's dense MLP: it is
/// gated, or no kernel is the activation.
bool spells_mlp(const ModelSpec& model);

/// What lies there. `branch`: bytes that the activation works on; `input`: of the MLP.
void add_spelt_mlp(
    std::vector<Traffic>& out, const ModelSpec& model, Bytes branch, Bytes input, bool autocast);

/// What an output gate moves beside attention, which gives `output` bytes: spelt out, or compiled.
void add_output_gate(std::vector<Traffic>& out, Bytes output, bool spells_out);

}  // namespace zeroplan
