// A question from the files that people launch with.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/cli/fit.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::answer;
using tests::Json;
using tests::require_refused;

namespace {

// In the manner of Megatron-LM's examples/gpt3.
const std::string script = R"(#!/bin/bash
# Runs the "345M" model
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=4
CHECKPOINT_PATH=$1 #<Specify path>
TP=${TP:-2}

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr ${MASTER_ADDR:-localhost}
)

GPT_MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336 # wide
    --num-attention-heads 32
    --group-query-attention --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope --normalization RMSNorm --swiglu
    --disable-bias-linear --untie-embeddings-and-output-weights
    --vocab-size 128256
)

TRAINING_ARGS="
    --micro-batch-size 1
    --global-batch-size 256
    --bf16
    --use-distributed-optimizer"

MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size ${TP}
	--pipeline-model-parallel-size 1
	--sequence-parallel
)

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    $TRAINING_ARGS \
    ${MODEL_PARALLEL_ARGS[@]} \
    --save "$CHECKPOINT_PATH"
)";

}  // namespace

TEST_CASE("a script that launches Megatron-LM says the whole question but the kind of GPU") {
  const TemporaryFolder folder;
  const std::string file = folder.write("train_llama.sh", script);
  const Json a = answer("fit --config " + file + " --gpus H100-80GB");
  REQUIRE(a.at("cluster").at("gpus") == 32);
  REQUIRE(a.at("model").at("name") == "train_llama");
  REQUIRE(a.at("model").at("parameters") == 8'030'261'248);  // llama3-8b, as published
  const Json& layout = a.at("layout");
  REQUIRE(layout.at("tp") == 2);
  REQUIRE(layout.at("sequence_length") == 8192);
  REQUIRE(layout.at("global_batch") == 256);
  REQUIRE(layout.at("zero") == 1);
  REQUIRE_THAT(a.at("assumptions").dump(), !ContainsSubstring("save '$1'"));

  // The catalog's model in the same layout is the same plan, and so is the plan that was printed.
  const Json named = answer("fit llama3-8b --config " + file + " --gpus 32xH100-80GB");
  REQUIRE(named.at("stages") == a.at("stages"));
  REQUIRE(named.at("step") == a.at("step"));
  REQUIRE(answer("fit " + folder.write("plan.json", a.dump())).at("stages") == a.at("stages"));

  const tests::Run imported = tests::zeroplan("import " + file);
  REQUIRE(imported.exit_code == 0);
  REQUIRE(imported.output.find("--runtime megatron --tp 2") == 0);
  REQUIRE_THAT(imported.errors, ContainsSubstring("it starts 32 ranks"));
}

TEST_CASE("what is exported is the whole question when read back") {
  const TemporaryFolder folder;
  for (const std::string question :
       {"llama3-8b --gpus 16xH100-80GB --tp 2 --pp 2 --zero 1 --recompute none --micro-batch 1",
        "qwen2.5-7b --gpus 8xH100-80GB --tp 1 --pp 1 --zero 1 --recompute full --micro-batch 1",
        "qwen3-32b --gpus 32xH100-80GB --tp 8 --pp 1 --zero 1 --recompute full --micro-batch 1",
        "mixtral-8x7b --gpus 16xH100-80GB --tp 2 --pp 1 --ep 8 --zero 1 --recompute full "
        "--micro-batch 1",
        "megatron-7.5b --gpus 16xA100-80GB --tp 2 --pp 2 --zero 1 --recompute full "
        "--micro-batch 1"}) {
    CAPTURE(question);
    const std::string file =
        folder.write("arguments", tests::zeroplan("export " + question).output);
    const std::size_t gpus = question.find("--gpus ");
    const std::string typed = question.substr(gpus, question.find(' ', gpus + 7) - gpus);
    const Json asked = answer("fit " + question);
    const Json read = answer("fit --config " + file + " " + typed);
    REQUIRE(read.at("model").at("parameters") == asked.at("model").at("parameters"));
    REQUIRE(read.at("layout") == asked.at("layout"));
    REQUIRE(read.at("stages") == asked.at("stages"));
  }
}

TEST_CASE(
    "what accelerate config wrote says runtime, sharding and ranks, and leaves the batch open") {
  const TemporaryFolder folder;
  const std::string common =
      "compute_environment: LOCAL_MACHINE\ndebug: false\ndowncast_bf16: 'no'\nmachine_rank: 0\n"
      "main_training_function: main\nmixed_precision: bf16\nnum_machines: 2\n"
      "num_processes: 16\nrdzv_backend: static\nsame_network: true\ntpu_env: []\nuse_cpu: false\n";
  const auto read = [&](const std::string& own, const std::string& typed = "") {
    const std::string file = folder.write("accelerate.yaml", common + own);
    const Json a =
        answer("fit llama3-8b --gpus H100 --config " + file + " --global-batch 64" + typed);
    REQUIRE(a.at("cluster").at("gpus") == 16);
    REQUIRE(a.at("layout").at("precision") == "bf16");
    CAPTURE(a.at("assumptions").dump());
    REQUIRE(a.at("assumptions").dump().find("not understood") == std::string::npos);
    return a;
  };
  const Json sharded = read(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_reshard_after_forward: true\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
      "  fsdp_activation_checkpointing: true\n  fsdp_offload_params: false\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n  fsdp_cpu_ram_efficient_loading: true\n");
  REQUIRE(sharded.at("runtime") == "fsdp2");
  REQUIRE(sharded.at("layout").at("zero") == 3);
  REQUIRE(sharded.at("layout").at("recompute") == "full");
  const Json kept = read(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: true\n");
  REQUIRE(kept.at("layout").at("zero") == 2);
  REQUIRE(kept.at("layout").at("offload") == "parameters");
  const Json deepspeed = read(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  gradient_clipping: 1.0\n"
      "  offload_optimizer_device: cpu\n  offload_param_device: none\n  zero3_init_flag: false\n"
      "  zero_stage: 2\n");
  REQUIRE(deepspeed.at("runtime") == "deepspeed");
  REQUIRE(deepspeed.at("layout").at("zero") == 2);
  REQUIRE(deepspeed.at("layout").at("offload") == "optimizer");
  REQUIRE(read("distributed_type: MULTI_GPU\n", " --recompute full").at("runtime") == "ddp");
  for (const auto& [own, words] :
       {std::pair{"distributed_type: XLA\n", "must be MULTI_GPU, FSDP or DEEPSPEED"},
        {"distributed_type: FSDP\nparallelism_config:\n  parallelism_config_tp_size: 4\n",
         "such a mesh is not read"},
        {"distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n",
         "give --hsdp"}}) {
    const std::string file = folder.write("refused.yaml", common + own);
    require_refused("fit llama3-8b --gpus H100 --config " + file, words);
  }
}

TEST_CASE("a configuration that cannot be read is fatal") {
  const TemporaryFolder folder;
  const std::string no_command = folder.write("run.sh", "#!/bin/bash\necho hello\n");
  require_refused("fit llama3-70b --gpus 64xH100 --config " + no_command, "must be a plan or");
  require_refused("sweep llama3-70b --gpus 64xH100 --config " + no_command, "must be a plan or");
  require_refused("explain llama3-70b --gpus 64xH100 --config " + no_command, "must be a plan or");
  const std::string wordless =
      folder.write("wordless.sh",
                   "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 "
                   "--num-attention-heads 4 --tensor-model-parallel-size 1\n");
  require_refused("fit --config " + wordless + " --gpus 8xH100", "MODEL is missing");
}

TEST_CASE("a decoder that is not known is answered as llama, openly") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("config.json",
                   R"({"model_type": "smollm9", "hidden_size": 2048, "intermediate_size": 8192,
  "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "hidden_act": "silu", "vocab_size": 32000, "tie_word_embeddings": false})");
  const Json a = answer("fit " + file + " --gpus 8xH100");
  REQUIRE_THAT(a.at("assumptions").dump(), ContainsSubstring("read as llama"));
  const Json forced = answer("fit " + file + " --gpus 8xH100 --as qwen2");
  REQUIRE(forced.at("model").at("parameters") > a.at("model").at("parameters"));
  require_refused("fit " + file + " --gpus 8xH100 --as lama", "must be one of");
  require_refused("fit llama3-8b --gpus 8xH100 --as qwen2", "--as reads a file");
}
