"""Megatron's hybrid models, whose layers a pattern lists: what builds them, and what else their arguments need."""

import linear_attention_kernels

PATTERN = "--hybrid-layer-pattern"
MAMBA = "M"
SPEC = ("--spec", "megatron.core.models.hybrid.hybrid_layer_specs", "hybrid_stack_spec")


def with_layers(words):
    """The arguments, with the classes of layers, for which Megatron has a name but no default."""
    hybrid = any(word.partition("=")[0] == PATTERN for word in words)
    return [*words, *SPEC] if hybrid and SPEC[0] not in words else words


def builder_of(args):
    if not args.hybrid_layer_pattern:
        import gpt_builders
        return gpt_builders.gpt_builder
    if MAMBA in args.hybrid_layer_pattern:
        linear_attention_kernels.demand(linear_attention_kernels.OF_MAMBA, "Megatron-LM has no Mamba-2")
    import hybrid_builders
    return hybrid_builders.hybrid_builder
