// Who is answered, and for how long? Front door: serve.
#include "cli/serve/server.hpp"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "cli/serve/route.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Error = boost::system::error_code;

constexpr std::uint32_t longest_request = 16 * 1024;
constexpr std::chrono::seconds request_time{5};
constexpr std::chrono::seconds reply_time{30};
constexpr int most_connections = 64;
constexpr int most_waiting = 32;

// What all connections share. Everything but answering runs on one thread.
struct Office {
  std::string host;
  bool loopback = true;
  int connections = 0;
  int waiting = 0;
  std::atomic<bool> open{true};
  asio::io_context io{1};     // after what its last handlers use
  asio::thread_pool desk{1};  // where questions are worked on, one at a time
};

// One request and its reply.
class Visit : public std::enable_shared_from_this<Visit> {
 public:
  Visit(Tcp::socket socket, Office& office) : stream_(std::move(socket)), office_(office) {
    ++office_.connections;
    parser_.header_limit(longest_request);
  }
  ~Visit() { --office_.connections; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  void begin() {
    stream_.expires_after(request_time);
    http::async_read_header(
        stream_, buffer_, parser_,
        [self = shared_from_this()](const Error& error, std::size_t) { self->read(error); });
  }

 private:
  void read(const Error& error) {
    if (error == http::error::header_limit) return write(refusal(431, "the request is too long"));
    if (error == http::error::body_limit) return write(refusal(413, "no content is taken"));
    if (error == beast::error::timeout) return;
    if (error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream) {
      return write(refusal(400, "this is no HTTP request"));
    }
    if (error) return;
    const auto& request = parser_.get();
    head_ = request.method() == http::verb::head;
    if (request.method() != http::verb::get && !head_) {
      return write(refusal(405, "only GET and HEAD are answered"));
    }
    const auto host = request[http::field::host];
    if (office_.loopback && !names_this_machine({host.data(), host.size()}, office_.host)) {
      return write(refusal(403, "the request names another host"));
    }
    if (office_.waiting >= most_waiting) return write(refusal(503, "too many questions wait"));
    ++office_.waiting;
    stream_.expires_never();
    asio::post(office_.desk, [self = shared_from_this(),
                              target = std::string(request.target())]() mutable {
      HttpReply reply = reply_to(target, [&] { return self->office_.open.load(); });
      Office& office = self->office_;
      asio::post(office.io, [self = std::move(self), reply = std::move(reply)]() mutable {
        --self->office_.waiting;
        self->write(std::move(reply));
      });
    });
  }

  void write(HttpReply reply) {
    response_.result(static_cast<unsigned>(reply.status));
    response_.version(11);
    response_.keep_alive(false);
    response_.set(http::field::content_type, reply.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("Content-Security-Policy",
                  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                  "img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
    if (reply.status == 405) response_.set(http::field::allow, "GET, HEAD");
    response_.body() = std::move(reply.body);
    response_.prepare_payload();
    if (head_) response_.body().clear();
    stream_.expires_after(reply_time);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](const Error&, std::size_t) { self->end(); });
  }

  // What is still being sent is let run out for a while, so that the reply is not lost.
  void end() {
    Error ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    drain();
  }

  void drain() {
    stream_.expires_after(std::chrono::milliseconds(500));
    stream_.async_read_some(asio::buffer(rest_),
                            [self = shared_from_this()](const Error& error, std::size_t count) {
                              self->drained_ += count;
                              if (!error && self->drained_ < 4 * longest_request) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  Office& office_;
  beast::flat_buffer buffer_{longest_request + 1024};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  char rest_[4096] = {};
  std::size_t drained_ = 0;
  bool head_ = false;
};

void accept(Tcp::acceptor& door, Office& office) {
  door.async_accept([&](const Error& error, Tcp::socket socket) {
    if (!door.is_open()) return;
    if (!error && office.connections < most_connections) {
      std::make_shared<Visit>(std::move(socket), office)->begin();
    }
    accept(door, office);
  });
}

Tcp::acceptor open_door(Office& office, const ServeArguments& arguments) {
  Error error;
  const std::string host = arguments.host == "localhost" ? "127.0.0.1" : arguments.host;
  const auto address = asio::ip::make_address(host, error);
  if (error) {
    throw InputError(fmt::format("--host {}: must be an address, as 127.0.0.1 or 0.0.0.0",
                                 in_quotes(arguments.host)));
  }
  office.host = arguments.host;
  office.loopback = address.is_loopback();
  Tcp::acceptor door(office.io);
  const Tcp::endpoint place(address, static_cast<std::uint16_t>(arguments.port));
  const auto require = [&](const Error& failed) {
    if (failed) {
      throw std::runtime_error(
          fmt::format("{}:{}: {}", arguments.host, arguments.port, failed.message()));
    }
  };
  door.open(place.protocol(), error);
  require(error);
  door.set_option(Tcp::acceptor::reuse_address(true), error);
  door.bind(place, error);
  require(error);
  door.listen(most_connections, error);
  require(error);
  return door;
}

}  // namespace

void serve(const ServeArguments& arguments, const std::function<void(std::int64_t)>& ready) {
  Office office;
  Tcp::acceptor door = open_door(office, arguments);
  asio::signal_set signals(office.io, SIGINT, SIGTERM);
  signals.async_wait([&](const Error& error, int) {
    if (error) return;
    office.open = false;
    office.io.stop();
  });
  accept(door, office);
  ready(door.local_endpoint().port());
  office.io.run();
  office.desk.stop();  // questions that still wait are dropped
  office.desk.join();
}

}  // namespace zeroplan
