// Ranks that are processes: they agree with threads, and whatever happens to one of them ends all,
// with a message and exit code 3.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

const std::string validate = "'" ZEROPLAN_BINARY
                             "' validate llama3-8b --gpus 3xH100-80GB "
                             "--seq 2048 --zero 1 --backend host ";

// A socket on a free port of the loopback interface.
class Door {
 public:
  Door() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door() { close(socket_); }
  void open() const { REQUIRE(listen(socket_, 1) == 0); }
  std::string port() const { return std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

std::string free_port() {
  return Door().port();
}

// One of two ranks, as a launcher would start it.
std::string rank(const std::string& number, const std::string& port, const std::string& nonce) {
  return "RANK=" + number + " WORLD_SIZE=2 LOCAL_RANK=" + number +
         " LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 ZEROPLAN_PORT=" + port +
         " ZEROPLAN_NONCE=" + nonce + " " + validate;
}

// Three ranks that would train for hours; `fault` happens to the second, whose process is $second,
// once all have started. Prints which of them are left when zeroplan has ended, and ends as it did.
tests::Run with_fault(const std::string& options, const std::string& fault) {
  return tests::shell(
      "children() { cat /proc/$1/task/$1/children; }\n"
      "timeout -k 1 300 " +
      validate + "--spawn 3 --steps 1000000 " + options +
      " &\n"
      "watch=$!\n"
      "until zeroplan=$(children $watch) && [ -n \"$zeroplan\" ] &&\n"
      "      ranks=$(children $zeroplan) && [ $(echo $ranks | wc -w) = 3 ]; do\n"
      "  [ $((tries += 1)) -lt 2400 ] || { kill $watch; exit 99; }; sleep 0.05; done\n"
      "second=$(echo $ranks | cut -d ' ' -f 2)\n" +
      fault +
      "\n"
      "wait $watch\n"
      "code=$?\n"
      "for rank in $ranks; do [ -e /proc/$rank ] && echo \"$rank is left\"; done\n"
      "exit $code");
}

}  // namespace

TEST_CASE("processes compute what threads compute, bit for bit") {
  const std::string asked =
      GENERATE("llama3-8b --seq 2048 --zero 2 --global-batch 8 --set reduce_bucket_size=20000",
               "gpt2-medium --zero 3 --global-batch 8 --set prefetch=true --set overlap_comm=true");
  const std::string plan =
      "validate " + asked + " --gpus 8xH100-80GB --tp 2 --pp 2 --backend host --json ";
  const tests::Run threads = tests::zeroplan(plan + "--ranks 8");
  const tests::Run processes = tests::zeroplan(plan + "--spawn 8");
  CAPTURE(asked, processes.errors);
  REQUIRE(processes.exit_code == 0);
  Json a = Json::parse(threads.output);
  Json b = Json::parse(processes.output);
  REQUIRE(b.at("backend_reason") == "as asked; 8 processes");
  for (const char* differs : {"backend_reason", "seconds", "time"}) {
    a.erase(differs);
    b.erase(differs);
  }
  REQUIRE(a == b);
}

TEST_CASE("ranks that are processes read the model that standard input gave") {
  const tests::Run run = tests::shell(
      "'" ZEROPLAN_BINARY
      "' validate - --gpus 2xH100-80GB --seq 128 --zero 1 --backend host --spawn 2 --steps 1 "
      "--json <<'E'\n"
      R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2,
          "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 1000,
          "max_position_embeddings": 128})"
      "\nE\n");
  CAPTURE(run.errors);
  REQUIRE(run.exit_code == 0);
  REQUIRE(Json::parse(run.output).at("backend_reason") == "as asked; 2 processes");
}

TEST_CASE("a rank that is killed ends all, and is named") {
  const tests::Run run = with_fault("", "kill -9 $second");
  CAPTURE(run.errors);
  REQUIRE(run.exit_code == 3);
  REQUIRE(run.output.empty());
  REQUIRE_THAT(run.errors, ContainsSubstring("rank 1 is lost"));
}

TEST_CASE("a rank that hangs is given up on in time, and is named") {
  const tests::Run run = with_fault("--timeout 10", "kill -STOP $second");
  CAPTURE(run.errors);
  REQUIRE(run.exit_code == 3);
  REQUIRE(run.output.empty());
  REQUIRE_THAT(run.errors, ContainsSubstring("rank 1"));
  REQUIRE_THAT(run.errors, ContainsSubstring("within 10 s"));
}

TEST_CASE("a rank without room says what did not fit") {
  for (const std::string ranks : {"--spawn 3", "--ranks 3"}) {
    const tests::Run run = tests::shell(validate + ranks + " --max-memory 33MiB");
    CAPTURE(run.errors);
    REQUIRE(run.exit_code == 3);
    REQUIRE(run.output.empty());
    REQUIRE_THAT(run.errors, ContainsSubstring("out of memory: "));
    REQUIRE_THAT(run.errors, ContainsSubstring("workspace 33554432"));
  }
}

TEST_CASE("a rank of another job is turned away, on both sides") {
  const std::string port = free_port();
  const tests::Run run =
      tests::shell(rank("0", port, "one") + "--timeout 10 &\n" + rank("1", port, "two") +
                   "--timeout 60\n" + "stranger=$?\nwait $!\necho $stranger $?");
  CAPTURE(run.errors);
  REQUIRE(run.output == "3 3\n");
  REQUIRE_THAT(run.errors, ContainsSubstring("belongs to another job"));
  REQUIRE_THAT(run.errors, ContainsSubstring("rank 1 did not come within 10 s; turned away: one of "
                                             "another job"));
}

TEST_CASE("a port that is taken or refused is a message") {
  const Door taken;
  taken.open();
  const tests::Run host = tests::shell(rank("0", taken.port(), "one"));
  REQUIRE(host.exit_code == 3);
  REQUIRE_THAT(host.errors, ContainsSubstring("rank 0 cannot listen on 127.0.0.1:" + taken.port()));
  const tests::Run guest = tests::shell(rank("1", free_port(), "one") + "--timeout 1");
  REQUIRE(guest.exit_code == 3);
  REQUIRE_THAT(guest.errors, ContainsSubstring("rank 0 does not answer on 127.0.0.1"));
  REQUIRE_THAT(guest.errors, ContainsSubstring("refused"));
}

TEST_CASE("one process is a job too") {
  const tests::Run run = tests::shell(validate + "--spawn 1 --json");
  CAPTURE(run.errors);
  REQUIRE(run.exit_code == 0);
  REQUIRE(Json::parse(run.output).at("ranks").size() == 1);
}

TEST_CASE("ranks that the plan does not shrink to are refused before any starts") {
  const tests::Run run = tests::shell(validate + "--tp 2 --spawn 3");
  REQUIRE(run.exit_code == 2);
  REQUIRE(run.output.empty());
}
