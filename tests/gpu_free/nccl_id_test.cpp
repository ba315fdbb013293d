// NCCL's id, made without a GPU, reaches every rank as it was.
#include <nccl.h>

#include <cstring>
#include <thread>

#include "tests/catch.hpp"
#include "validator/rendezvous/rendezvous.hpp"

using namespace zeroplan;

TEST_CASE("ranks get the NCCL id that rank 0 made") {
  constexpr std::int64_t ranks = 4;
  constexpr std::chrono::milliseconds patience{60'000};
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  Blob made(sizeof id);
  std::memcpy(made.data(), &id, sizeof id);
  Socket listening = listen_on("127.0.0.1", 0);
  const std::uint16_t port = port_of(listening);
  std::vector<Blob> got(ranks);
  {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        const Launch launch{
            .launcher = "test", .rank = rank, .world = ranks, .port = port, .nonce = 9};
        Rendezvous star = rank == 0 ? Rendezvous(std::move(listening), launch, patience)
                                    : Rendezvous(launch, patience);
        got[static_cast<std::size_t>(rank)] = star.broadcast(rank == 0 ? made : Blob{});
      });
    }
  }
  for (const Blob& blob : got) CHECK(blob == made);
}
