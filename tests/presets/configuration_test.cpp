#include "presets/configuration.hpp"

#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/presets/imported.hpp"

using namespace zeroplan;
using tests::import;
using tests::value;

TEST_CASE("Megatron-LM's arguments are read as people write them") {
  const ImportedConfiguration m = import(
      "# pretraining\n"
      "--tensor-model-parallel-size 8 --pipeline-model-parallel-size=4 \\\n"
      "--num-layers 32 --hidden-size 4096 --swiglu\n"
      "--sequence-parallel --use-distributed-optimizer --bf16\n"
      "--recompute-granularity selective --recompute-modules core_attn moe_act\n"
      "--micro-batch-size 2 --global-batch-size 512 --seq-length 8192\n"
      "--overlap-grad-reduce --lr 3e-4 --attention-backend flash\n");
  REQUIRE(m.format == "megatron");
  CHECK(value(m, "--tp") == "8");
  CHECK(value(m, "--pp") == "4");
  CHECK(value(m, "--cp") == "1");
  CHECK(value(m, "--zero") == "1");
  CHECK(value(m, "--sequence-parallel") == "on");
  CHECK(value(m, "--micro-batch") == "2");
  CHECK(value(m, "--global-batch") == "512");
  CHECK(value(m, "--seq") == "8192");
  CHECK(value(m, "--precision") == "bf16");
  CHECK(value(m, "--recompute") == "selective");
  CHECK(value(m, "recompute_modules") == "core_attn,moe_act");
  CHECK(value(m, "attention_backend") == "flash");
  CHECK(value(m, "hidden_dropout") == "0.1");  // Megatron-LM's own default
  CHECK(m.about_model == std::vector<std::string>{"num-layers", "hidden-size", "swiglu"});
  CHECK(value(m, "overlap_grad_reduce") == "true");
  CHECK(m.not_understood.empty());
  CHECK(m.immaterial == std::vector<std::string>{"lr"});
  CHECK(value(import("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads"),
              "--zero") == "2");
  CHECK(value(import("--use-megatron-fsdp"), "--zero") == "3");
  CHECK(import("--use-megatron-fsdp --ckpt-format fsdp_dtensor").not_understood.empty());
  CHECK(import("--tensor-model-parallel-size 1 --ckpt-format torch_dist --clip-grad 0.0")
            .not_understood == std::vector<std::string>{"clip-grad '0.0'"});
  CHECK(value(import("--sequence-parallel --tensor-model-parallel-size 1"),
              "--sequence-parallel") == "off");
  CHECK(value(import("--fp16"), "--precision") == "fp16");
  const std::string copies = "--num-distributed-optimizer-instances 2";
  CHECK(value(import("--use-distributed-optimizer " + copies), "--hsdp") == "dp/2");
  CHECK(import(copies).not_understood ==
        std::vector<std::string>{"num-distributed-optimizer-instances '2'"});  // nothing is sharded
}

TEST_CASE("Megatron-LM's layout of a pipeline says how many chunks a rank has") {
  const ImportedConfiguration m = import(
      "--pipeline-model-parallel-size 16 --mtp-num-layers 1 "
      "--pipeline-model-parallel-layout 'Et*3|(tt|)*29,|mL'\n");
  CHECK(value(m, "--vpp") == "2");
  CHECK(value(m, "--schedule") == "interleaved");
  CHECK(value(m, "pipeline_model_parallel_layout") == "Et*3|(tt|)*29|mL");
  CHECK(m.not_understood.empty());
  const ImportedConfiguration apart =
      import("--pipeline-model-parallel-size 16 --pipeline-model-parallel-layout 'Et|m|L'");
  REQUIRE(apart.not_understood.size() == 1);
  CHECK_THAT(apart.not_understood.front(), ContainsSubstring("Et|m|L"));
}

TEST_CASE("Megatron-LM's pattern of a hybrid model says its pipeline and what it predicts") {
  const std::string four = "--pipeline-model-parallel-size 2 --hybrid-layer-pattern ";
  const ImportedConfiguration even = import(four + "'ME|M*|EM|*E/*E'\n");
  CHECK(value(even, "--vpp") == "2");
  CHECK(value(even, "--schedule") == "interleaved");
  CHECK(value(even, "mtp_num_layers") == "1");
  CHECK(value(even, "pipeline_model_parallel_layout").empty());
  const ImportedConfiguration ends = import(four + "'MEM|*'\n");
  CHECK(value(ends, "--vpp") == "1");
  CHECK(value(ends, "decoder_first_pipeline_num_layers") == "3");
  CHECK(value(ends, "decoder_last_pipeline_num_layers") == "1");
  const ImportedConfiguration own = import(four + "'MEM|*|E|M'\n");
  CHECK(value(own, "pipeline_model_parallel_layout") == "Et*3|(t|)*2tL");
  CHECK(says(error_text([&] { import(four + "'M|E|*'\n"); }),
             "3 chunks are no multiple of 2 pipeline stages"));
}

TEST_CASE("older names of a pattern say what the pattern says") {
  const std::string model =
      "--hidden-size 64 --num-attention-heads 4 --vocab-size 64 "
      "--max-position-embeddings 8 --num-experts 4 --moe-router-topk 2 ";
  const ImportedConfiguration older =
      import(model +
             "--is-hybrid-model --hybrid-override-pattern ME*E --mtp-num-layers 2 "
             "--mtp-hybrid-override-pattern '*E'\n");
  const ImportedConfiguration newer =
      import(model + "--hybrid-layer-pattern 'ME*E/*E/*E' --mtp-num-layers 2\n");
  CHECK(older.not_understood.empty());
  CHECK(older.options == newer.options);
  CHECK(older.model_config == newer.model_config);
  CHECK_THAT(newer.model_config, ContainsSubstring("ME*E/*E/*E"));
  CHECK(says(error_text([&] {
               import(model + "--hybrid-override-pattern M* --hybrid-layer-pattern M*\n");
             }),
             "both say the layers"));
  // Without a pattern they say nothing that is understood.
  CHECK(import(model + "--is-hybrid-model\n").not_understood ==
        std::vector<std::string>{"is-hybrid-model"});
}

TEST_CASE("DeepSpeed's JSON keeps its own defaults and lists what it does not know") {
  const ImportedConfiguration d = import(R"({
    "train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,
    "bf16": {"enabled": true}, "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 5e7, "max_live_parameters": 1e8,
      "offload_param": {"device": "cpu", "pin_memory": true}, "mics_shard_size": 8}})");
  REQUIRE(d.format == "deepspeed");
  CHECK(value(d, "--runtime") == "deepspeed");
  CHECK(value(d, "--zero") == "3");
  CHECK(value(d, "--global-batch") == "256");
  CHECK(value(d, "--micro-batch") == "4");
  CHECK(value(d, "--offload") == "parameters");
  CHECK(value(d, "--hsdp") == "8");
  CHECK(value(d, "reduce_bucket_size") == "50000000");
  CHECK(value(d, "stage3_max_live_parameters") == "100000000");  // the short name loads too
  CHECK(value(d, "overlap_comm") == "true");                     // stage 3's own default
  CHECK(d.not_understood == std::vector<std::string>{});
  CHECK(d.immaterial == std::vector<std::string>{"gradient_clipping",
                                                 "zero_optimization.offload_param.pin_memory"});
  CHECK(value(import(R"({"zero_optimization": {"stage": 2}})"), "overlap_comm").empty());
  // A value that the key does not take is not understood, and not taken.
  const ImportedConfiguration wrong =
      import(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": "many"}})");
  REQUIRE(wrong.not_understood.size() == 1);
  CHECK_THAT(wrong.not_understood.front(), ContainsSubstring("reduce_bucket_size"));
}

TEST_CASE("DeepSpeed's JSON may have comments and trailing commas, as hjson has") {
  const ImportedConfiguration d = import(
      "// ours\n# and theirs\n{\"bf16\": {\"enabled\": true, /* always,\n } */},  # it fits\n"
      "\"zero_optimization\": {\"stage\": 3,}, // stage 3, \"all\"\n"
      "\"note\": \"# // /* no \\\" comment */ ,}\", }\n");
  CHECK(value(d, "--precision") == "bf16");
  CHECK(value(d, "--zero") == "3");
  CHECK(d.not_understood == std::vector<std::string>{"note '# // /* no \" comment */ ,}'"});
  const auto refusal = [](const std::string& text) { return error_text([&] { import(text); }); };
  CHECK_THAT(refusal("{ // one\n\"a\": 1 \"b\": 2}"), ContainsSubstring("line 2, column 10"));
  CHECK_THAT(refusal("{\"a\": 1 /* open }"), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal("{\"a\": \"open"), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal("{\"a\": [1,,]}"), ContainsSubstring("not JSON"));
}

TEST_CASE("what DeepSpeed puts on disk leaves the device as what it puts in host memory") {
  const ImportedConfiguration d = import(R"({"zero_optimization": {"stage": 3,
    "offload_optimizer": {"device": "nvme", "ratio": 1.0},
    "offload_param": {"device": "nvme", "nvme_path": "/disk"}}})");
  CHECK(value(d, "--offload") == "parameters");
  CHECK(d.not_understood ==
        std::vector<std::string>{
            "zero_optimization.offload_optimizer.device 'nvme': taken for host memory",
            "zero_optimization.offload_param.device 'nvme': taken for host memory"});
  const ImportedConfiguration half = import(
      R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}})");
  CHECK(value(half, "--offload") == "optimizer");
  CHECK(half.not_understood ==
        std::vector<std::string>{"zero_optimization.offload_optimizer.ratio '0.5'"});
  CHECK(value(import(R"({"zero_optimization": {"offload_optimizer": {"device": "none"}}})"),
              "--offload") == "none");
}

TEST_CASE("what DeepSpeed's JSON leaves to be filled in is listed, and chooses nothing") {
  const ImportedConfiguration d = import(R"({
    "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
    "gradient_accumulation_steps": 8, "train_micro_batch_size_per_gpu": "auto",
    "sequence_parallel_size": "auto", "tensor_parallel": {"autotp_size": "auto"},
    "zero_optimization": {"stage": 3, "overlap_comm": "auto", "reduce_bucket_size": "auto",
      "max_live_parameters": "auto", "mics_shard_size": "auto"},
    "train_batch_size": "auto"})");
  CHECK(d.not_understood ==
        std::vector<std::string>{
            "bf16.enabled 'auto'", "fp16.enabled 'auto'", "sequence_parallel_size 'auto'",
            "tensor_parallel.autotp_size 'auto'", "train_batch_size 'auto'",
            "train_micro_batch_size_per_gpu 'auto'", "zero_optimization.max_live_parameters 'auto'",
            "zero_optimization.mics_shard_size 'auto'", "zero_optimization.overlap_comm 'auto'",
            "zero_optimization.reduce_bucket_size 'auto'"});
  CHECK(value(d, "--precision").empty());
  CHECK(value(d, "--tp") == "1");
  CHECK(value(d, "--cp") == "1");
  CHECK(value(d, "overlap_comm") == "true");  // as where nothing is said
  CHECK(value(d, "--gradient-accumulation") == "8");
  for (const char* key : {"--micro-batch", "--global-batch", "--hsdp", "reduce_bucket_size"}) {
    CHECK(value(d, key).empty());
  }
  CHECK(value(import(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": true}})"),
              "--precision") == "fp16");
  CHECK(value(import(R"({"bf16": {"enabled": false}})"), "--precision") == "fp32");
  CHECK(value(import(R"({"zero_optimization": {"stage": "auto"}})"), "--zero").empty());
}

TEST_CASE("a value that is not known is listed and not taken for another") {
  const ImportedConfiguration d = import(
      R"({"train_batch_size": "auto", "optimizer": {"type": "Lamb"},
          "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}})");
  CHECK(d.not_understood ==
        std::vector<std::string>{"optimizer.type 'Lamb'", "train_batch_size 'auto'",
                                 "zero_optimization.reduce_bucket_size 'auto'"});
  CHECK(value(d, "--optimizer").empty());
  const ImportedConfiguration m = import("--optimizer lion --attention-backend local");
  CHECK(m.not_understood ==
        std::vector<std::string>{"optimizer 'lion'", "attention-backend 'local'"});
  CHECK(value(m, "--optimizer").empty());
  const ImportedConfiguration t = import(
      "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"DualPipeV\"\n");
  CHECK(t.not_understood ==
        std::vector<std::string>{"parallelism.pipeline_parallel_schedule 'DualPipeV'"});
  CHECK(value(t, "--schedule").empty());
}

TEST_CASE("Megatron's own layers store their scores, but for those of its legacy models") {
  const std::string own = "--num-layers 2 --transformer-impl local ";
  CHECK(value(import(own), "--attention") == "unfused");
  CHECK(value(import(own + "--attention-backend local"), "--attention") == "unfused");
  const ImportedConfiguration flash = import(own + "--attention-backend flash");
  CHECK(value(flash, "--attention") == "unfused");
  CHECK(flash.not_understood == std::vector<std::string>{"attention-backend 'flash'"});
  const ImportedConfiguration legacy = import(own + "--use-legacy-models --use-flash-attn");
  CHECK(value(legacy, "--attention") == "flash");
  CHECK(value(legacy, "megatron_core") == "0.17");
  CHECK(legacy.not_understood.empty());
  CHECK(value(import("--num-layers 2"), "--attention") == "flash");
}

TEST_CASE("nanotron's YAML is read") {
  const ImportedConfiguration n = import(
      "parallelism:\n  dp: 4\n  pp: 2\n  pp_engine: afab\n  tp: 2\n  tp_mode: REDUCE_SCATTER\n"
      "tokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 8\n"
      "  sequence_length: 2048\noptimizer:\n  zero_stage: 1\ngeneral:\n  project: mine\n");
  REQUIRE(n.format == "nanotron");
  CHECK(value(n, "--global-batch") == "64");
  CHECK(value(n, "--schedule") == "gpipe");
  CHECK(value(n, "--sequence-parallel") == "on");
  CHECK(n.not_understood.empty());
  CHECK(n.immaterial == std::vector<std::string>{"general.project"});
}

TEST_CASE("files that cannot be used are refused with the line") {
  const auto refusal = [](const std::string& text) { return error_text([&] { import(text); }); };
  CHECK_THAT(refusal("{"), ContainsSubstring("not JSON"));
  CHECK_THAT(refusal("hello"), ContainsSubstring("Megatron-LM's arguments"));
  CHECK_THAT(refusal("[training]\nseq_len\n"), ContainsSubstring("line 2"));
  CHECK_THAT(refusal("[training]\nseq_len = 1\nseq_len = 2\n"), ContainsSubstring("twice"));
  CHECK_THAT(refusal("[training]\nseq_len = 1\n[model]\n[training]\n"),
             ContainsSubstring("line 4: table 'training' is declared twice"));
  CHECK_THAT(refusal("--tensor-model-parallel-size 2\n--tensor-model-parallel-size 4"),
             ContainsSubstring("twice"));
  CHECK_THAT(refusal("- dp\n"), ContainsSubstring("must be a plan"));
  CHECK_THAT(refusal("a: b\nlist:\n  - pp: 1\n  - dp\n"), ContainsSubstring("line 4"));
  CHECK_THAT(refusal("base: &base\n  tp: 1\n"), ContainsSubstring("anchors"));
  CHECK_THAT(refusal("base_model: mine\ndatasets:\n  path: data\n"),
             ContainsSubstring("no key of it is one of nanotron's") &&
                 ContainsSubstring("torchtitan's TOML"));
  CHECK_THAT(refusal("parallelism:\n"), ContainsSubstring("nanotron's"));
  CHECK_THAT(refusal("--lr 3e-4 --model_name_or_path gpt2"),
             ContainsSubstring("no key of it is one of Megatron-LM's"));
  CHECK_THAT(refusal(R"({"model_type": "llama", "hidden_size": 4096})"),
             ContainsSubstring("no key of it is one of DeepSpeed's"));
  CHECK_THAT(refusal("[project]\nname = \"mine\"\n"),
             ContainsSubstring("no key of it is one of torchtitan's"));
  CHECK_THAT(refusal(R"({"schema": "zeroplan.compare/1"})"), ContainsSubstring("not a plan"));
  CHECK_THAT(refusal(R"({"schema": "zeroplan.sweep/1"})"), ContainsSubstring("holds no plans"));
}

TEST_CASE("a file of brackets alone ends, and a byte order mark is no part of a file") {
  const std::string brackets(100'000, '[');
  CHECK(import_configuration("[training]\nseq_len = 1\nx = " + brackets + std::string(100'000, ']'),
                             "file")
            .not_understood.size() == 1);
  const std::string plain = R"({"zero_optimization": {"stage": 3}})";
  CHECK(import_configuration("\xef\xbb\xbf" + plain, "file").options ==
        import_configuration(plain, "file").options);
}
