// A page says what --json says, asks nobody, and lets no name out of its text.
#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::ordered_json;
using tests::Run;

namespace {

const std::string question =
    "llama3.2-1b --gpus 4xA100-40GB --tp 2 --pp 2 --recompute none --zero 1 --micro-batch 1 "
    "--global-batch 8 ";

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Spaces that hold a number and its unit together, as others.
std::string with_spaces(std::string html) {
  const std::string kept = "\u00a0";
  for (auto at = html.find(kept); at != std::string::npos; at = html.find(kept, at)) {
    html.replace(at, kept.size(), " ");
  }
  return html;
}

struct Written {
  std::string html, markdown;
  Json answer;  // of --json in the same run
};

Written written(const std::string& arguments, int exit_code = 0) {
  const TemporaryFolder folder;
  const auto html = folder.path() / "page.html";
  const auto markdown = folder.path() / "page.md";
  const Run run = tests::zeroplan(arguments + " --json --html '" + html.string() +
                                  "' --markdown '" + markdown.string() + "'");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == exit_code);
  return {with_spaces(content(html)), content(markdown), Json::parse(run.output)};
}

// As a browser shows it: without tags, entities read.
std::string shown(const std::string& html) {
  std::string out;
  bool tag = false;
  for (const char c : html) {
    if (c == '<') tag = true;
    if (!tag) out += c;
    if (c == '>') tag = false;
  }
  for (const auto& [entity, sign] : {std::pair{"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}}) {
    for (auto at = out.find(entity); at != std::string::npos; at = out.find(entity, at)) {
      out.replace(at, std::string(entity).size(), sign);
    }
  }
  return out;
}

Json carried(const std::string& html) {
  const std::string open = "id=\"answer\">";
  const std::size_t start = html.find(open) + open.size();
  return Json::parse(html.substr(start, html.find("</script>", start) - start));
}

std::string gib(const Json& bytes) {
  return fmt::format("{:.2f}", bytes.get<double>() / (1 << 30));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Nothing that a browser would fetch, and no script but the two of the page.
void require_alone(const std::string& html) {
  for (const std::string fetches :
       {"src", "href", "action", "poster", "srcset", "data", "@import", "url(", "<link"}) {
    for (auto at = html.find(fetches); at != std::string::npos; at = html.find(fetches, at + 1)) {
      const bool attribute = std::isalpha(static_cast<unsigned char>(fetches[0])) != 0;
      const auto next = html.find_first_not_of(" \t\n", at + fetches.size());
      CAPTURE(html.substr(at, 40));
      REQUIRE((attribute && (next == std::string::npos || html[next] != '=')));
    }
  }
  REQUIRE(count(html, "<script") == 2);
}

// Every element that is opened is closed, in order.
void require_well_formed(const std::string& html) {
  const std::string body = html.substr(0, html.find("<script"));
  std::vector<std::string> open;
  for (auto at = body.find('<'); at != std::string::npos; at = body.find('<', at + 1)) {
    const bool closes = body[at + 1] == '/';
    const auto name_at = at + (closes ? 2 : 1);
    const auto name_end = body.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789", name_at);
    const auto end = body.find('>', at);
    REQUIRE(end != std::string::npos);
    const std::string name = body.substr(name_at, name_end - name_at);
    if (name.empty() || name == "meta" || body[end - 1] == '/') continue;
    if (!closes) {
      open.push_back(name);
      continue;
    }
    CAPTURE(name, at);
    REQUIRE_FALSE(open.empty());
    REQUIRE(open.back() == name);
    open.pop_back();
  }
  REQUIRE(open == std::vector<std::string>{"html", "body"});
}

}  // namespace

TEST_CASE("the page of fit says what its JSON says") {
  const Written page = written("fit " + question + "--tokens 1B --price 2/h");
  const Json& a = page.answer;
  REQUIRE(carried(page.html) == a);
  require_alone(page.html);
  require_well_formed(page.html);
  for (const std::string& text : {page.html, page.markdown}) {
    REQUIRE_THAT(text, ContainsSubstring("needs " + gib(a["peak"]["device_bytes"]) + " of " +
                                         gib(a["capacity_bytes"]) + " GiB, " +
                                         gib(a["headroom_bytes"]) + " GiB free"));
    REQUIRE_THAT(
        text, ContainsSubstring(fmt::format("{:.1f} days", a["training"]["days"].get<double>())));
    REQUIRE_THAT(text,
                 ContainsSubstring(fmt::format("{:.1f} %", 100 * a["step"]["mfu"].get<double>())));
  }
  // Each stage and each of its categories, as a row of the table.
  for (const Json& stage : a["stages"]) {
    std::string row = fmt::format("<td>stage {}, {} layers</td>", stage["stage"].get<int>(),
                                  stage["layers"].get<int>());
    for (const auto& [name, bytes] : stage["categories"].items()) {
      bool used = false;
      for (const Json& other : a["stages"]) used = used || other["categories"][name] > 0;
      if (used) row += "<td class=\"number\">" + gib(bytes) + "</td>";
    }
    row += "<td class=\"number\">" + gib(stage["device_bytes"]) + "</td>";
    REQUIRE_THAT(page.html, ContainsSubstring(row));
  }
  for (const Json& load : a["communication"]) {
    REQUIRE_THAT(page.html, ContainsSubstring("<td class=\"number\">" +
                                              gib(load["sent_bytes_per_gpu"]) + "</td>"));
  }
}

TEST_CASE("a page asks the same question with one thing changed, really") {
  const Written page = written("fit " + question);
  const Json twice = Json::parse(
      tests::zeroplan("fit llama3.2-1b --gpus 8xA100-40GB --tp 2 --pp 2 --recompute none --zero 1 "
                      "--micro-batch 1 --global-batch 8 --json")
          .output);
  REQUIRE(twice["cluster"]["gpus"] == 8);
  REQUIRE_THAT(page.markdown, ContainsSubstring(fmt::format("| 8 GPUs | fits | {} |",
                                                            gib(twice["peak"]["device_bytes"]))));
  const Json all = Json::parse(
      tests::zeroplan("fit llama3.2-1b --gpus 4xA100-40GB --tp 2 --pp 2 --recompute none "
                      "--micro-batch 1 --global-batch 8 --zero 0 --json")
          .output);
  REQUIRE_THAT(page.markdown,
               ContainsSubstring("| ZeRO 0 | fits | " + gib(all["peak"]["device_bytes"]) + " |"));
}

TEST_CASE("the page of an open question shows the search that chose its plan") {
  const Written page = written("fit llama3.2-1b --gpus 4xA100-40GB --global-batch 8");
  const Json sweep = Json::parse(
      tests::zeroplan("sweep llama3.2-1b --gpus 4xA100-40GB --global-batch 8 --json").output);
  const Json& taken = sweep["plans"][sweep["recommended"].get<std::size_t>()];
  REQUIRE(taken["layout"] == page.answer["layout"]);
  require_well_formed(page.html);
  // Each plan of the list is a mark that says its numbers, on a desk and on a phone.
  for (std::size_t i = 0; i < sweep["plans"].size(); ++i) {
    const Json& plan = sweep["plans"][i];
    const std::string rate =
        fmt::format("{:.0f}", plan["step"]["tokens_per_second_per_gpu"].get<double>());
    const std::string mark = fmt::format(
        "plan {}: {} GiB, {} tokens/s a GPU", i + 1, gib(plan["peak"]["device_bytes"]),
        rate.size() > 3 ? rate.substr(0, rate.size() - 3) + "," + rate.substr(rate.size() - 3)
                        : rate);
    CAPTURE(mark);
    REQUIRE(count(page.html, mark) == 2);
  }
  REQUIRE(count(page.html, "class=\"ring\"") == 2);
  REQUIRE(count(page.html, " taken\"") == 1);
  REQUIRE_THAT(page.html, ContainsSubstring("id=\"map\""));
  // One whose layout was given was chosen by none.
  const Written given = written("fit " + question);
  REQUIRE(given.html.find("id=\"search\"") == std::string::npos);
}

TEST_CASE("a page shows the front of all layouts where it was asked for") {
  const std::string asked = "sweep llama3.2-1b --gpus 4xA100-40GB --global-batch 8 --top 4";
  REQUIRE(count(written(asked).html, "class=\"of-space\"") == 0);
  REQUIRE(count(written(asked + " --front").html, "class=\"of-space\"") == 2);
}

TEST_CASE("commands on a page are what was typed, and versions are those of the document") {
  const Written page = written("fit " + question);
  const std::string text = shown(page.html.substr(0, page.html.find("<script")));
  REQUIRE_THAT(text, ContainsSubstring("zeroplan fit llama3.2-1b --gpus 4xA100-40GB --tp 2"));
  REQUIRE_THAT(text, ContainsSubstring("--sequence-parallel on --micro-batch 1"));
  for (const auto& [name, version] : page.answer["versions"].items()) {
    REQUIRE_THAT(text, ContainsSubstring(version.get<std::string>()));
  }
}

TEST_CASE("the page of sweep marks the recommended plan and lists all") {
  const Written page = written(
      "sweep llama3.2-1b --gpus 4xA100-40GB --global-batch 8 --top 4 "
      "--threads 1");
  Json carries = carried(page.html);
  REQUIRE(carries["plans"] == page.answer["plans"]);
  require_alone(page.html);
  require_well_formed(page.html);
  for (const Json& plan : page.answer["plans"]) {
    REQUIRE_THAT(page.html, ContainsSubstring("<td class=\"number\">" +
                                              gib(plan["headroom_bytes"]) + "</td>"));
  }
  REQUIRE(count(page.html, "class=\"ring\"") == 2);  // for a desk and for a phone
  REQUIRE_THAT(page.html, ContainsSubstring("id=\"map\""));
}

TEST_CASE("the page of compare has both sides") {
  const Written page =
      written("compare llama3.2-1b --gpus 4xA100-40GB --a '--zero 0' --b '--zero 1'");
  REQUIRE(carried(page.html) == page.answer);
  require_alone(page.html);
  require_well_formed(page.html);
  for (const std::string side : {"a", "b"}) {
    REQUIRE_THAT(page.html, ContainsSubstring("id=\"memory-" + side + "\""));
    REQUIRE_THAT(page.html, ContainsSubstring(gib(page.answer[side]["peak"]["device_bytes"])));
  }
}

TEST_CASE("a page is the same each time") {
  const Written first = written("fit " + question);
  REQUIRE(first.html == written("fit " + question).html);
  REQUIRE(first.markdown == written("fit " + question).markdown);
}

TEST_CASE("a page says what does not fit, and a question of lists has none") {
  const Written page = written("fit llama3-8b --gpus 1xA100-40GB", 1);
  REQUIRE_THAT(page.html, ContainsSubstring("does not fit"));
  REQUIRE_THAT(page.html, ContainsSubstring("GiB short"));
  require_well_formed(page.html);
  const Written none = written("sweep llama3-70b --gpus 1xA100-40GB", 1);
  REQUIRE_THAT(none.html, ContainsSubstring("no layout of this space fits"));
  require_well_formed(none.html);
  const TemporaryFolder folder;
  const Run lists = tests::zeroplan("fit llama3-8b --gpus 8xH100,8xA100 --html '" +
                                    (folder.path() / "x.html").string() + "'");
  REQUIRE(lists.exit_code == 2);
  REQUIRE_THAT(lists.errors, ContainsSubstring("a page is of one question"));
  REQUIRE_FALSE(std::filesystem::exists(folder.path() / "x.html"));
}

TEST_CASE("a hostile name stays text on the page") {
  const TemporaryFolder folder;
  const std::string config =
      R"({"model_type":"llama","hidden_size":512,"intermediate_size":1024,"num_hidden_layers":2,)"
      R"("num_attention_heads":8,"num_key_value_heads":8,"vocab_size":1000})";
  const std::string file = folder.write("x<script>alert(1)<\\script>&\"|`_*.json", config);
  const Written page = written("fit '" + file + "' --gpus 1xA100-40GB --global-batch 4");
  require_alone(page.html);
  require_well_formed(page.html);
  REQUIRE(page.html.find("<script>alert") == std::string::npos);
  REQUIRE(page.markdown.find("<script>alert(1)<\\script>&\"|") ==
          page.markdown.find("zeroplan fit '") + std::string("zeroplan fit '").size() +
              file.size() - std::string("x<script>alert(1)<\\script>&\"|`_*.json").size() + 1);
  REQUIRE(carried(page.html)["model"]["name"] == page.answer["model"]["name"]);
}

TEST_CASE("a page that cannot be written is said to be lost") {
  const Run nowhere = tests::zeroplan("fit " + question + "--html /nowhere/page.html");
  REQUIRE(nowhere.exit_code == 2);
  REQUIRE(nowhere.output.empty());
  const Run full = tests::zeroplan("fit " + question + "--html /dev/full");
  REQUIRE(full.exit_code == 3);
  REQUIRE(full.output.empty());
}

TEST_CASE("a page from standard input reads it once") {
  const TemporaryFolder folder;
  const auto html = folder.path() / "page.html";
  const Run run =
      tests::shell("'" ZEROPLAN_BINARY "' fit " + question +
                   "--json | '" ZEROPLAN_BINARY "' fit - --html '" + html.string() + "' --quiet");
  CAPTURE(run.errors);
  REQUIRE(run.exit_code == 0);
  require_well_formed(content(html));
}
