// A cluster with switches of its own, from file to answer.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

// Leaves of four nodes of eight H100, 8:1 above them, in which the nodes are the places listed.
std::string cluster(const std::string& nodes, double ratio = 8) {
  return Json{
      {"name", "lab"},
      {"gpu", "H100-80GB"},
      {"gpus_per_node", 8},
      {"intra_node", "nvlink"},
      {"intra_node_gigabytes_per_second_per_direction", 450},
      {"network_cards", 8},
      {"network_gigabits_per_second_per_card", 400},
      {"fabric",
       {{"levels",
         {{{"name", "leaf"}, {"joins", 4}, {"oversubscription", ratio}}, {{"name", "spine"}}}},
        {"nodes", Json::parse(nodes)}}}}
      .dump();
}

Json answer(const std::string& arguments) {
  const tests::Run run = tests::zeroplan(arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code <= 1);
  return Json::parse(run.output);
}

double seconds(const Json& fit) {
  return fit.at("step").at("seconds").get<double>();
}

const std::string layout =
    " --tp 8 --pp 2 --vpp 1 --cp 1 --zero 1 --micro-batch 1 --global-batch 64 --recompute none"
    " --schedule 1f1b --sequence-parallel on";

}  // namespace

TEST_CASE("the slowest link is named, in text and for programs") {
  const TemporaryFolder folder;
  const std::string whole = folder.write("whole.json", cluster("[\"0-7\"]"));
  const std::string hole = folder.write("hole.json", cluster("[0, \"2-8\"]"));
  const std::string question = "llama3-70b" + layout + " --cluster ";

  // Uplinks of 4 x 400 / 8 = 200 GB/s for the 32 GPUs of a stage, 6.25 each; rings of a stage stay
  // below their leaf, and have a card each.
  const Json fit = answer("fit " + question + whole);
  bool sends = false, reduces = false;
  for (const Json& row : fit.at("communication")) {
    if (row.at("group") == "tp") REQUIRE_FALSE(row.contains("bottleneck"));
    if (row.at("group") == "pp") {
      const Json& slowest = row.at("bottleneck");
      REQUIRE(slowest.at("link") == "uplinks of leaf 0");
      REQUIRE(slowest.at("bytes_per_second").get<double>() == Approx(200e9));
      REQUIRE(slowest.at("groups") == 32);
      REQUIRE(slowest.at("bytes_per_second_each").get<double>() == Approx(6.25e9));
      sends = true;
    }
    if (row.at("group") == "dp") {
      REQUIRE(row.at("bottleneck").at("link") == "cards of a node");
      reduces = true;
    }
  }
  REQUIRE((sends && reduces));

  const tests::Run text = tests::zeroplan("explain " + question + whole + " --row communication");
  REQUIRE_THAT(
      text.output,
      ContainsSubstring("slowest: uplinks of leaf 0: 200 GB/s for 32 groups, 6.25 GB/s each"));
  // Leaf 1 has a node of the first stage and three of the second, and both send out of it.
  const tests::Run with_hole =
      tests::zeroplan("explain " + question + hole + " --row communication");
  REQUIRE_THAT(
      with_hole.output,
      ContainsSubstring("slowest: uplinks of leaf 1: 200 GB/s for 16 groups, 12.5 GB/s each"));
  const Json explained = answer("explain " + question + hole + " --row communication");
  REQUIRE(explained.dump().find("\"bottleneck\"") != std::string::npos);

  // Node 1 stands in place 2.
  const Json ranks = answer("explain " + question + hole + " --ranks");
  REQUIRE(ranks.at("ranks").at(7).at("place") == 0);
  REQUIRE(ranks.at("ranks").at(8).at("place") == 2);
  REQUIRE(ranks.at("ranks").at(63).at("place") == 8);
  REQUIRE(ranks.at("ranks").at(23).at("switch") == 0);
  REQUIRE(ranks.at("ranks").at(24).at("switch") == 1);
  REQUIRE(ranks.at("ranks").at(63).at("switch") == 2);
  REQUIRE_THAT(tests::zeroplan("explain " + question + hole + " --ranks").output,
               ContainsSubstring("    rank    node   place    leaf   GPU"));

  // Where no places are listed, which they are is assumed.
  REQUIRE(fit.at("assumptions").dump().find("without a hole") == std::string::npos);
  const Json meta = answer("fit llama3-8b --gpus 64 --cluster meta-24k --tp 2");
  REQUIRE_THAT(meta.at("assumptions").dump(), ContainsSubstring("ranks fill one rack after"));

  // Without switches all is as the cards have it, and nothing is named.
  const Json plain = answer("fit llama3-70b --gpus 64xH100-80GB" + layout);
  REQUIRE(plain.dump().find("bottleneck") == std::string::npos);
  const std::string full = folder.write("full.json", cluster("[\"0-7\"]", 1));
  REQUIRE(answer("fit " + question + full).at("step") == plain.at("step"));
  REQUIRE(seconds(fit) > seconds(plain));
}

// Leaf 1 has a node of the first stage and three of the second: rings of both leave it, and
// the pairs of stages come down to it (tests/cost_model/pipeline/contention_test.cpp).
TEST_CASE("an uplink that two kinds of groups need at once is named, and costs time") {
  const TemporaryFolder folder;
  const std::string whole = folder.write("whole.json", cluster("[\"0-7\"]"));
  const std::string hole = folder.write("hole.json", cluster("[0, \"2-8\"]"));
  const std::string full = folder.write("full.json", cluster("[\"0-7\"]", 1));
  const std::string beside =
      " --set overlap_grad_reduce=true --set overlap_param_gather=true --cluster ";
  const std::string question = "llama3-70b" + layout + beside;
  const Json fit = answer("fit " + question + hole);
  bool found = false;
  for (const Json& row : fit.at("communication")) {
    if (row.at("group") != "dp" || row.at("collective") != "all-gather") continue;
    REQUIRE(row.at("shared").size() == 1);
    const Json& shared = row.at("shared").at(0);
    REQUIRE(shared.at("group") == "pp");
    REQUIRE(shared.at("during") == "forward");
    REQUIRE(shared.at("link") == "uplinks of leaf 1");
    REQUIRE(shared.at("bytes_per_second").get<double>() == Approx(200e9));
    REQUIRE(shared.at("demand").get<double>() == Approx(2));
    found = true;
  }
  REQUIRE(found);
  REQUIRE_THAT(tests::zeroplan("explain " + question + hole + " --row communication").output,
               ContainsSubstring("beside pp send-recv, forward: both ask for 2 times the 200 GB/s "
                                 "of uplinks of leaf 1"));
  // Rings below their leaves, or uplinks that carry what the cards send, have nothing to share.
  REQUIRE(answer("fit " + question + whole).dump().find("\"shared\"") == std::string::npos);
  const Json plain = answer("fit llama3-70b --gpus 64xH100-80GB" + layout +
                            beside.substr(0, beside.find(" --cluster")));
  REQUIRE(answer("fit " + question + full).at("step") == plain.at("step"));
}

// Each of 64 with each, and a ring over all, on uplinks that each of them fills.
TEST_CASE("experts over nodes and the gathers beside them share uplinks") {
  const TemporaryFolder folder;
  const std::string tree = folder.write("tree.json", cluster("[\"0-7\"]", 4));
  const std::string full = folder.write("full.json", cluster("[\"0-7\"]", 1));
  const std::string question =
      "fit qwen3-30b-a3b --runtime fsdp2 --zero 3 --ep 64 --tp 1 --pp 1 --cp 1 --micro-batch 1 "
      "--global-batch 64 --cluster ";
  const Json fit = answer(question + tree);
  const Json plain = answer(question + full);
  REQUIRE(plain.dump().find("\"shared\"") == std::string::npos);
  double exposed = 0, hidden_more = 0;
  for (std::size_t i = 0; i < fit.at("communication").size(); ++i) {
    const Json& row = fit.at("communication").at(i);
    const Json& alone = plain.at("communication").at(i);
    exposed += row.at("exposed_seconds").get<double>();
    REQUIRE(row.at("exposed_seconds").get<double>() <=
            row.at("seconds").get<double>() * (1 + 1e-9));
    if (!row.contains("shared")) continue;
    REQUIRE(row.at("group") == "dp");
    REQUIRE(row.at("shared").at(0).at("group") == "ep");
    // The ring has a card's speed on both: only what it shares is new.
    REQUIRE(row.at("seconds") == alone.at("seconds"));
    hidden_more +=
        row.at("exposed_seconds").get<double>() - alone.at("exposed_seconds").get<double>();
  }
  REQUIRE(hidden_more > 0);
  REQUIRE(exposed == Approx(fit.at("step").at("communication_exposed_seconds").get<double>()));
}

TEST_CASE("an order of the nodes that is faster is told, and is as fast as told") {
  const TemporaryFolder folder;
  const std::string mixed = folder.write("mixed.json", cluster("[0, 4, 1, 5, 2, 6, 3, 7]"));
  const std::string question = "fit llama3-70b" + layout + " --cluster ";
  const Json told = answer(question + mixed);
  const Json& other = told.at("placement");
  REQUIRE(other.at("step_seconds").get<double>() < seconds(told));
  const std::string ordered = folder.write("ordered.json", cluster(other.at("nodes").dump()));
  const Json then = answer(question + ordered);
  REQUIRE(then.at("step").at("seconds") == other.at("step_seconds"));
  REQUIRE_FALSE(then.contains("placement"));
  REQUIRE_THAT(tests::zeroplan(question + mixed).output,
               ContainsSubstring("under as few switches as can be: list the nodes as"));
}

TEST_CASE("sweep and fit agree on a fabric, and bounds leave nothing out", "[release]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("lab.json", cluster("[\"0-2\", \"4-5\", \"8-10\"]"));
  for (const std::string runtime : {"megatron", "fsdp2", "deepspeed"}) {
    const std::string question =
        "llama3-8b --global-batch 128 --runtime " + runtime + " --cluster " + file;
    const Json found = answer("sweep " + question + " --top 3");
    const Json all = answer("sweep " + question + " --top 3 --exhaustive");
    CAPTURE(runtime);
    REQUIRE(found.at("plans").size() == 3);
    const std::string saved = folder.write(runtime + ".json", found.dump());
    for (std::size_t i = 0; i < 3; ++i) {
      const Json& plan = found.at("plans").at(i);
      REQUIRE(plan.at("layout") == all.at("plans").at(i).at("layout"));
      const Json fit = answer("fit " + saved + "#" + std::to_string(i + 1));
      REQUIRE(fit.at("layout") == plan.at("layout"));
      REQUIRE(fit.at("step").at("seconds") == plan.at("step").at("seconds"));
      REQUIRE(fit.at("communication") == plan.at("communication"));
    }
  }
}

// Of plans whose experts and gathers share uplinks, too.
TEST_CASE("a search that shared uplinks slow leaves nothing out, and fit answers as it does") {
  const TemporaryFolder folder;
  const std::string tree = folder.write("tree.json", cluster("[\"0-7\"]", 4));
  for (const std::string runtime : {"megatron", "fsdp2"}) {
    CAPTURE(runtime);
    const std::string question =
        "qwen3-30b-a3b --global-batch 256 --ep 64 --cp 1 --recompute none --runtime " + runtime +
        " --cluster " + tree;
    const Json found = answer("sweep " + question + " --top 4");
    const Json all = answer("sweep " + question + " --top 4 --exhaustive");
    REQUIRE(found.at("plans").size() == 4);
    const std::string saved = folder.write(runtime + ".json", found.dump());
    for (std::size_t i = 0; i < 4; ++i) {
      const Json& plan = found.at("plans").at(i);
      REQUIRE(plan.at("layout") == all.at("plans").at(i).at("layout"));
      const Json fit = answer("fit " + saved + "#" + std::to_string(i + 1));
      REQUIRE(fit.at("step").at("seconds") == plan.at("step").at("seconds"));
      REQUIRE(fit.at("communication").dump().find("\"shared\"") != std::string::npos);
    }
  }
}

TEST_CASE("a fabric that contradicts itself, or has too few nodes, is one line and exit 2") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const tests::Run run = tests::zeroplan(arguments);
    CAPTURE(arguments, run.errors);
    REQUIRE(run.exit_code == 2);
    REQUIRE(run.output.empty());
    REQUIRE(run.errors.find('\n') == run.errors.size() - 1);
    REQUIRE_THAT(run.errors, ContainsSubstring(words));
  };
  const std::string twice = folder.write("twice.json", cluster("[0, 0]"));
  refused("fit llama3-8b --cluster " + twice, "place 0 stands twice in 'nodes'");
  const std::string two = folder.write("two.json", cluster("[0, 5]"));
  refused("fit llama3-8b --gpus 24 --cluster " + two,
          "--gpus: 24 GPUs need more than the 2 nodes of the fabric");
  refused("fit llama3-8b --nodes 3 --cluster " + two, "--nodes: 24 GPUs need more");
}
