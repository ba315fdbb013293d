// How do the ranks of a job find each other? Front door: Rendezvous.
#include "validator/rendezvous/rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "gpu_probe/environment_error.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t protocol = 0x7a65726f706c0001;  // "zeropl", version 1
constexpr std::int64_t largest_blob = std::int64_t{1} << 30;
constexpr std::int64_t longest_reason = 1000;

// The first message of a rank that joins. All nodes of a job count in the same byte order.
struct Hello {
  std::uint64_t protocol;
  std::uint64_t nonce;
  std::int64_t world;
  std::int64_t rank;
};

enum class Welcome : std::int64_t { accepted, other_job, other_world, rank_taken };

enum class Kind : std::int64_t { blob, failure };  // a failure's text says why all must stop

struct Header {
  Kind kind;
  std::int64_t bytes;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
T receive_value(const Socket& socket, Deadline deadline) {
  T value{};
  receive_all(socket, std::as_writable_bytes(std::span(&value, 1)), deadline);
  return value;
}

std::string text_of(Welcome welcome, const Launch& launch) {
  const std::string place = fmt::format("{}:{}", launch.address, launch.port);
  switch (welcome) {
    case Welcome::accepted:
      break;
    case Welcome::other_job:
      return fmt::format("{} belongs to another job: its nonce is not that of rank {}", place,
                         launch.rank);
    case Welcome::other_world:
      return fmt::format("rank 0 on {} does not expect {} ranks", place, launch.world);
    case Welcome::rank_taken:
      return fmt::format("rank 0 on {} has met another rank {} already", place, launch.rank);
  }
  return fmt::format("{} gave rank {} an answer that is none; is it rank 0 of this job?", place,
                     launch.rank);
}

// What a peer says, fit for a line of a terminal.
std::string printable(std::span<const std::byte> said) {
  std::string text;
  for (const std::byte byte : said) {
    const char c = static_cast<char>(byte);
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

// Room is made as bytes come, not as they are announced.
Blob receive_bytes(const Socket& socket, std::int64_t bytes, Deadline until) {
  constexpr std::size_t first_part = std::size_t{1} << 20;
  const auto size = static_cast<std::size_t>(bytes);
  Blob blob;
  while (blob.size() < size) {
    const std::size_t had = blob.size();
    blob.resize(std::min(size, std::max(2 * had, first_part)));
    receive_all(socket, std::span(blob).subspan(had), until);
  }
  return blob;
}

}  // namespace

// By the reason, however many come.
class Rendezvous::Strangers {
 public:
  enum Why : std::size_t { other_job, other_world, rank_taken, hung_up, silent };

  void add(Why why) { ++counts_[why]; }
  std::string text() const {
    std::vector<std::string> parts;
    for (std::size_t why = 0; why < counts_.size(); ++why) {
      if (counts_[why] == 0) continue;
      parts.push_back((counts_[why] == 1 ? "one" : std::to_string(counts_[why])) + texts[why]);
    }
    return parts.empty() ? "" : fmt::format("; turned away: {}", fmt::join(parts, ", "));
  }

 private:
  static constexpr std::array<const char*, 5> texts{
      " of another job", " of another number of ranks", " whose rank was taken", " that hung up",
      " that said nothing"};
  std::array<std::size_t, texts.size()> counts_{};
};

Rendezvous::Rendezvous(const Launch& launch, std::chrono::milliseconds patience)
    : launch_(launch), patience_(patience), peers_(static_cast<std::size_t>(launch.world)) {
  if (launch.world == 1) return;
  if (launch.rank == 0) {
    host(listen_on(launch.address, launch.port));
  } else {
    join();
  }
}

Rendezvous::Rendezvous(Socket listening, const Launch& launch, std::chrono::milliseconds patience)
    : launch_(launch), patience_(patience), peers_(static_cast<std::size_t>(launch.world)) {
  host(std::move(listening));
}

void Rendezvous::greet(Socket peer, Strangers& strangers, Deadline deadline) {
  Welcome welcome = Welcome::accepted;
  try {
    const Deadline soon = std::min(deadline, Clock::now() + moment_of(patience_));
    const auto hello = receive_value<Hello>(peer, soon);
    if (hello.protocol != protocol || hello.nonce != launch_.nonce) {
      welcome = Welcome::other_job;
    } else if (hello.world != launch_.world || hello.rank < 1 || hello.rank >= launch_.world) {
      welcome = Welcome::other_world;
    } else if (peers_[static_cast<std::size_t>(hello.rank)].is_open()) {
      welcome = Welcome::rank_taken;
    }
    send_all(peer, bytes_of(welcome), soon);
    if (welcome == Welcome::accepted) {
      peers_[static_cast<std::size_t>(hello.rank)] = std::move(peer);
      return;
    }
    strangers.add(welcome == Welcome::other_job     ? Strangers::other_job
                  : welcome == Welcome::other_world ? Strangers::other_world
                                                    : Strangers::rank_taken);
  } catch (const ConnectionLost&) {
    strangers.add(Strangers::hung_up);
  } catch (const DeadlinePassed&) {
    strangers.add(Strangers::silent);
  }
}

void Rendezvous::host(Socket listening) {
  Strangers strangers;
  const Deadline until = deadline();
  const auto missing = [&] {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 1; rank < this->ranks(); ++rank) {
      if (!peers_[rank].is_open()) ranks.push_back(rank);
    }
    return ranks;
  };
  while (!missing().empty()) {
    try {
      greet(accept_from(listening, until), strangers, until);
    } catch (const DeadlinePassed&) {
      give_up(fmt::format("rank {} did not come within {} s{}", fmt::join(missing(), ", "),
                          std::chrono::duration<double>(patience_).count(), strangers.text()));
    }
  }
  barrier();  // everybody knows that everybody is here
}

void Rendezvous::join() {
  const Deadline until = deadline();
  Socket socket = connect_to(launch_.address, launch_.port, until);
  Welcome welcome = Welcome::accepted;
  try {
    const Hello hello{protocol, launch_.nonce, launch_.world, launch_.rank};
    send_all(socket, bytes_of(hello), until);
    welcome = receive_value<Welcome>(socket, until);
  } catch (const ConnectionLost&) {
    throw EnvironmentError(fmt::format("{}:{} hung up on rank {}; is it rank 0 of this job?",
                                       launch_.address, launch_.port, launch_.rank));
  } catch (const DeadlinePassed&) {
    throw EnvironmentError(fmt::format("{}:{} did not answer rank {} in time", launch_.address,
                                       launch_.port, launch_.rank));
  }
  if (welcome != Welcome::accepted) throw EnvironmentError(text_of(welcome, launch_));
  peers_[0] = std::move(socket);
  barrier();
}

void Rendezvous::give_up(const std::string& message) {
  if (launch_.rank == 0) {
    const std::string reason = message.substr(0, static_cast<std::size_t>(longest_reason));
    const Header header{Kind::failure, static_cast<std::int64_t>(reason.size())};
    const Deadline soon = Clock::now() + std::chrono::milliseconds(200);
    for (Socket& peer : peers_) {
      if (!peer.is_open()) continue;
      try {
        send_all(peer, bytes_of(header), soon);
        send_all(peer, std::as_bytes(std::span(reason)), soon);
      } catch (const ConnectionLost&) {  // it cannot be told
      } catch (const DeadlinePassed&) {
      }
    }
  }
  for (Socket& peer : peers_) peer = Socket{};
  throw EnvironmentError(message);
}

void Rendezvous::send(std::size_t rank, const Blob& blob, const char* during, Deadline until) {
  if (!peers_[rank].is_open()) throw EnvironmentError("the ranks of this job have parted already");
  try {
    const Header header{Kind::blob, static_cast<std::int64_t>(blob.size())};
    send_all(peers_[rank], bytes_of(header), until);
    send_all(peers_[rank], blob, until);
  } catch (const ConnectionLost&) {
    give_up(fmt::format("rank {} is lost: its connection closed during {}", rank, during));
  } catch (const DeadlinePassed&) {
    give_up(fmt::format("rank {} does not listen: time-out during {}", rank, during));
  }
}

Blob Rendezvous::receive(std::size_t rank, const char* during, Deadline until, std::int64_t most) {
  if (!peers_[rank].is_open()) throw EnvironmentError("the ranks of this job have parted already");
  try {
    const auto header = receive_value<Header>(peers_[rank], until);
    const bool failure = header.kind == Kind::failure && rank == 0;
    const std::int64_t longest = failure ? longest_reason : header.kind == Kind::blob ? most : -1;
    if (header.bytes < 0 || header.bytes > longest) {
      give_up(fmt::format("rank {} sent what is no message during {}", rank, during));
    }
    Blob blob = receive_bytes(peers_[rank], header.bytes, until);
    if (!failure) return blob;
    give_up("rank 0 stopped the job: " + printable(blob));
  } catch (const ConnectionLost&) {
    give_up(fmt::format("rank {} is lost: its connection closed during {}", rank, during));
  } catch (const DeadlinePassed&) {
    give_up(fmt::format("rank {} did not come to {} within {} s", rank, during,
                        std::chrono::duration<double>(patience_).count()));
  }
}

Blob Rendezvous::broadcast(Blob from_rank_0) {
  const Deadline until = deadline();
  if (launch_.rank != 0) return receive(0, "a broadcast", until, largest_blob);
  for (std::size_t rank = 1; rank < ranks(); ++rank) {
    send(rank, from_rank_0, "a broadcast", until);
  }
  return from_rank_0;
}

std::vector<Blob> Rendezvous::gather(Blob mine) {
  const Deadline until = deadline();
  if (launch_.rank != 0) {
    send(0, mine, "a gather", until);
    return {};
  }
  std::vector<Blob> all;
  all.push_back(std::move(mine));
  for (std::size_t rank = 1; rank < ranks(); ++rank) {
    all.push_back(receive(rank, "a gather", until, largest_blob));
  }
  return all;
}

void Rendezvous::barrier() {
  const Deadline until = deadline();
  if (launch_.rank != 0) {
    send(0, {}, "a barrier", until);
    receive(0, "a barrier", until, 0);
    return;
  }
  for (std::size_t rank = 1; rank < ranks(); ++rank) receive(rank, "a barrier", until, 0);
  for (std::size_t rank = 1; rank < ranks(); ++rank) send(rank, {}, "a barrier", until);
}

std::string Rendezvous::own_address() const {
  return launch_.rank == 0 ? launch_.address : address_of(peers_[0]);
}

std::optional<std::string> Rendezvous::lost_peer() const {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (peers_[rank].is_open() && has_hung_up(peers_[rank])) {
      return fmt::format("rank {} is lost: its connection closed", rank);
    }
  }
  return std::nullopt;
}

}  // namespace zeroplan
