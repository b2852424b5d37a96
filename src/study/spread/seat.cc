#include "study/spread/seat.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace armilla {
namespace {

// The longest outcome. (What a socket takes at once is bounded: 200 KiB where nobody has changed it.)
constexpr std::size_t kLongestMessage = 128 * 1024;

constexpr std::int64_t kNoPiece = -1;

[[noreturn]] void fail(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

// A message is its kind, its piece and its text.
constexpr std::size_t kHead = 1 + sizeof(std::int64_t);

void send_news(int socket, Seat::News news, std::int64_t piece, std::string_view text) {
  std::string message(kHead, static_cast<char>(news));
  std::memcpy(&message[1], &piece, sizeof piece);
  message += text.substr(0, kLongestMessage - kHead);
  while (::send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) ::_exit(1);  // nobody is there any more
  }
}

// Ends with the process that forked this one.
void end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

}  // namespace

Seat::Seat() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) fail("socketpair");
  // What is waiting to be written would be written by every child.
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  keeper_ = ::fork();
  if (keeper_ < 0) fail("fork");
  if (keeper_ > 0) {
    ::close(pair[1]);
    socket_ = pair[0];
    return;
  }
  end_with(parent);
  ::signal(SIGTERM, SIG_IGN);  // is for the leader, too, which ends this one when it has what it needs
  ::close(pair[0]);
  socket_ = pair[1];
  void* shared = ::mmap(nullptr, sizeof *at_work_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) ::_exit(1);
  at_work_ = new (shared) std::atomic<std::int64_t>(kNoPiece);
  keep();
}

Seat::~Seat() {
  if (serves_ || keeper_ == 0) return;
  ::close(socket_);
  // A runner under way may go on for long: it ends with its keeper.
  ::kill(keeper_, SIGKILL);
  ::waitpid(keeper_, nullptr, 0);
}

void Seat::abandon() {
  ::close(socket_);
  keeper_ = 0;
}

// Returns in the runner.
void Seat::keep() {
  for (bool is_first = true;; is_first = false) {
    // The first runner reads what it needs while its leader does. Any other is made when there is something
    // to do for it: where all die at once they are as many as there are pieces.
    char byte = 0;
    const ssize_t waiting = is_first ? 1 : ::recv(socket_, &byte, 1, MSG_PEEK);
    if (waiting < 0 && errno == EINTR) continue;
    if (waiting <= 0) ::_exit(0);
    const pid_t keeper = ::getpid();
    const pid_t runner = ::fork();
    if (runner < 0) ::_exit(1);
    if (runner == 0) {
      end_with(keeper);
      // Ctrl-C is for the leader to understand, and what all processes find wrong for it to say.
      ::signal(SIGINT, SIG_IGN);
      ::setenv("OMPI_COMM_WORLD_RANK", "runner", 1);
      serves_ = true;
      return;
    }
    int status = 0;
    while (::waitpid(runner, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) {
      if (WEXITSTATUS(status) == 0) ::_exit(0);
      send_news(socket_, News::absence, kNoPiece,
                fmt::format("the process that was to do it ended with exit code {}", WEXITSTATUS(status)));
      ::_exit(1);
    }
    const std::int64_t piece = at_work_->exchange(kNoPiece);
    // Not taken yet: the next runner will.
    Piece first{.number = kNoPiece};
    if (::recv(socket_, &first, sizeof first, MSG_PEEK | MSG_DONTWAIT) == sizeof first &&
        first.number == piece)
      continue;
    if (piece == kNoPiece) continue;
    send_news(socket_, News::death, piece,
              fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  }
}

void Seat::serve(const std::function<std::string(const Piece&)>& perform) {
  // Whatever the command has done with them. A runner that is told to end is a runner that dies; Ctrl-C,
  // which the whole job is told, is for the leader.
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_IGN);
  for (;;) {
    // First what the keeper is to know, then the piece: a runner that is killed between the two
    // loses nothing.
    Piece piece;
    ssize_t size = ::recv(socket_, &piece, sizeof piece, MSG_PEEK);
    if (size < 0 && errno == EINTR) continue;
    if (size != sizeof piece) ::_exit(0);
    at_work_->store(piece.number);
    do size = ::recv(socket_, &piece, sizeof piece, 0);
    while (size < 0 && errno == EINTR);
    try {
      send_news(socket_, News::outcome, piece.number, perform(piece));
    } catch (const std::exception& error) {
      send_news(socket_, News::fault, piece.number, error.what());
    }
    at_work_->store(kNoPiece);
  }
}

void Seat::give(const Piece& piece) const {
  // A keeper that has gone has said so: that message is on its way.
  while (::send(socket_, &piece, sizeof piece, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

std::optional<Seat::Message> Seat::look() {
  if (absent_) return std::nullopt;
  // Most looks find nothing: room is made for what is there.
  const ssize_t waiting = ::recv(socket_, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  if (waiting < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  std::string buffer(static_cast<std::size_t>(std::max<ssize_t>(0, waiting)), '\0');
  const ssize_t size = waiting <= 0 ? waiting : ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  Message message{News::absence, kNoPiece, "the process that was to do it is gone"};
  if (static_cast<std::size_t>(std::max<ssize_t>(0, size)) >= kHead) {
    message.news = static_cast<News>(buffer.front());
    std::memcpy(&message.piece, &buffer[1], sizeof message.piece);
    message.text = buffer.substr(kHead, static_cast<std::size_t>(size) - kHead);
  }
  absent_ = message.news == News::absence;
  return message;
}

}  // namespace armilla
