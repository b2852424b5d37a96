#include "sim/engine/messenger.h"

#include "base/splitmix.h"

namespace armilla {

Messenger::Messenger(const RunContext& context, bool rendezvous)
    : context_(context),
      rendezvous_(rendezvous),
      target_(context.queue.add_handler(*this)),
      sent_(static_cast<std::size_t>(context.graph.ranks)) {}

Channel Messenger::matched(const Channel& channel) const {
  const std::vector<std::int32_t>& stands_for = context_.classes.stands_for;
  if (stands_for.empty()) return channel;
  Channel folded = channel;
  // Ranks of one class post what they send to, and receive from, under their representatives' names: one
  // message stands for all.
  folded.source = stands_for[static_cast<std::size_t>(channel.source)];
  folded.destination = stands_for[static_cast<std::size_t>(channel.destination)];
  return folded;
}

std::size_t Messenger::Hash::operator()(const Channel& channel) const {
  std::uint64_t hash = 0;
  for (const std::uint64_t part : {std::uint64_t{channel.space} << 32 | channel.tag,
                                   std::uint64_t{static_cast<std::uint32_t>(channel.source)} << 32 |
                                       static_cast<std::uint32_t>(channel.destination),
                                   static_cast<std::uint64_t>(channel.bytes.value)}) {
    hash = hash_with(hash, part);
  }
  return hash;
}

// Messages that are alike are matched in the order in which they were posted, and have come.
bool Messenger::post(Matches& matches, const Channel& channel, Notice notice) {
  const auto [entry, fresh] = matches.try_emplace(channel);
  Waiting& waiting = entry->second;
  if (waiting.arrived > 0) {
    // An entry goes when nothing waits any more, or tags that are used once would be kept for good.
    if (--waiting.arrived == 0) matches.erase(entry);
    return true;
  }
  const std::uint32_t at = posts_.add({notice});
  (waiting.first == kNone ? waiting.first : posts_[waiting.last].next) = at;
  waiting.last = at;
  return false;
}

std::optional<Notice> Messenger::arrive(Matches& matches, const Channel& channel) {
  const auto [entry, fresh] = matches.try_emplace(channel);
  Waiting& waiting = entry->second;
  if (waiting.first == kNone) {
    ++waiting.arrived;
    return std::nullopt;
  }
  const Post post = posts_.remove(waiting.first);
  waiting.first = post.next;
  if (waiting.first == kNone) matches.erase(entry);
  return post.notice;
}

void Messenger::send(const Channel& channel, Notice done) {
  if (!rendezvous_) {
    transmit(channel, done);
    return;
  }
  // Through an event of this moment: nobody is told from within the call by which it posts.
  if (post(handshakes_, matched(channel), done))
    context_.queue.schedule(context_.queue.now(), target_, flights_.add({Kind::late_send, channel, done}));
}

void Messenger::receive(const Channel& channel, Notice done) {
  if (!rendezvous_) {
    accept(channel, done);
    return;
  }
  // The receiver asks; the data leaves when the request has come and the sender has posted, too.
  send_unmatched(channel.destination, channel.source, kHandshakeBytes,
                 {target_, flights_.add({Kind::handshake, channel, done})});
}

void Messenger::transmit(const Channel& channel, Notice done) {
  for (RunObserver* const observer : context_.observers) observer->leaves(channel);
  send_unmatched(channel.source, channel.destination, channel.bytes,
                 {target_, flights_.add({Kind::message, channel, done})});
}

void Messenger::accept(const Channel& channel, Notice done) {
  const bool is_here = post(messages_, matched(channel), done);
  if (is_here) {
    // As in `send`: through an event, though it is there already.
    context_.queue.schedule(context_.queue.now(), target_, flights_.add({Kind::late_receive, channel, done}));
  } else {
    for (RunObserver* const observer : context_.observers) observer->waits(channel);
  }
}

void Messenger::handle(std::uint64_t argument) {
  const Flight flight = flights_.remove(static_cast<std::uint32_t>(argument));
  switch (flight.kind) {
    case Kind::message: {
      const std::optional<Notice> receiver = arrive(messages_, matched(flight.channel));
      for (RunObserver* const observer : context_.observers) {
        if (receiver) observer->meets(flight.channel);
        observer->arrives(flight.channel);
      }
      tell(flight.notice);
      if (receiver) tell(*receiver);
      return;
    }
    // The receive is posted before the data can leave: it arrives later even where links take no time.
    case Kind::handshake: {
      const std::optional<Notice> sender = arrive(handshakes_, matched(flight.channel));
      accept(flight.channel, flight.notice);
      if (sender) transmit(flight.channel, *sender);
      return;
    }
    case Kind::late_receive:
      tell(flight.notice);
      return;
    case Kind::late_send:
      transmit(flight.channel, flight.notice);
      return;
  }
}

}  // namespace armilla
