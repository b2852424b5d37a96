#include "sim/astra/shared_bus.h"

#include <list>

namespace armilla {
namespace {

constexpr int kTransfersInARow = 8;
constexpr double kMemoryBusGap = 0.0038;

}  // namespace

// One end of a LogGP channel; its partner is the other. With a memory bus behind it, what it sends, processes
// or hands over crosses that first.
class SharedBuses::Bus {
  // What happens at an end of a channel.
  enum class BusEvent : std::uint8_t {
    look,
    send_finished,
    receive_finished,
    processing_finished,
    send_back,
    process,
    retire
  };

  struct ChannelParameters {
    std::int64_t l, o, g;
    double gap_per_byte;
    std::int64_t reduction_delay;
  };

 public:
  Bus(const RunContext& context, const SystemLayer& system, std::int32_t rank, std::uint32_t target)
      : outer_({system.bus_l_ns, system.bus_o_ns, system.bus_g_ns, system.bus_gap_per_byte_ns,
                system.local_reduction_delay},
               rank, context, target),
        inner_(
            {system.bus_l_ns, system.bus_o_ns, system.bus_g_ns, kMemoryBusGap, system.local_reduction_delay},
            rank, context, target) {
    outer_.near.memory = &inner_;
  }

  void cross(bool to_endpoint, std::int64_t bytes, bool processed, bool returned, std::uint64_t argument) {
    Request request;
    request.bytes = bytes;
    request.processed = processed;
    request.returned = returned;
    request.argument = argument;
    (to_endpoint ? outer_.near : outer_.far).request(request);
  }

 private:
  struct End;

  struct Request {
    std::int64_t bytes = 0;
    bool processed = false, returned = false;
    std::uint64_t argument = 0;  // for the client, when it is not on an errand of another end
    End* errand_of = nullptr;  // the end of the outer channel that waits for this crossing of the memory bus
    std::list<Request>::iterator errand;
    BusEvent afterwards = BusEvent::look;
  };

  struct Channel;

  struct End final : public EventHandler {
    enum class State : std::uint8_t { free, sending, receiving };

    End(Channel& channel, End& other) : channel_(channel), partner(other) {
      target = channel.context.queue.add_handler(*this);
    }

    void request(const Request& request) {
      if (memory) {
        run_errand(waiting_to_send, request, BusEvent::send_back, true);
        return;
      }
      sends.push_back(request);
      if (state == State::free) send_next_if_fair();
    }

    void handle(std::uint64_t event) override { happens(static_cast<BusEvent>(event)); }

    void happens(BusEvent event) {
      switch (event) {
        case BusEvent::send_finished:
          last_transfer = channel_.context.queue.now();
          previous = state;
          state = State::free;
          ++in_a_row;
          break;
        case BusEvent::receive_finished:
          finish_receiving();
          break;
        case BusEvent::processing_finished:
          finish_processing();
          break;
        case BusEvent::send_back:
          sends.push_back(*errand);
          waiting_to_send.erase(errand);
          break;
        case BusEvent::process:
          processing.push_back(*errand);
          waiting_to_process.erase(errand);
          if (!is_processing) start_processing();
          break;
        case BusEvent::retire: {
          const auto retired = errand;
          hand_over(*retired);
          retiring.erase(retired);
          break;
        }
        case BusEvent::look:
          break;
      }
      if (state == State::free && !sends.empty()) send_next_if_fair();
    }

    void send_next_if_fair() {
      // After so many in a row the partner goes first, unless it has had as many itself.
      if (in_a_row > kTransfersInARow && !partner.sends.empty() && partner.in_a_row <= kTransfersInARow) {
        if (partner.state == State::free) partner.happens(BusEvent::look);
        return;
      }
      send_next();
    }

    void send_next() {
      const ChannelParameters& p = channel_.parameters;
      std::int64_t offset = p.o;
      // The gap holds from one sending to the next; after receiving there is the overhead alone.
      if (previous == State::sending) {
        // In whole nanoseconds, ASTRA-sim's ticks.
        const std::int64_t since = (channel_.context.queue.now() - last_transfer).value / 1000;
        offset = p.o + since > p.g ? p.o : p.g - since;
      }
      const Request request = sends.front();
      sends.pop_front();
      // LogGP (Alexandrov et al. 1995): a message of k bytes takes o + (k - 1) G + L + o, its sender o + (k -
      // 1) G of it.
      const double moving = static_cast<double>(request.bytes - 1) * p.gap_per_byte;
      partner.receives.push_back(request);
      partner.previous = partner.state;
      partner.state = State::receiving;
      partner.in_a_row = 0;
      partner.later_on(BusEvent::receive_finished,
                       static_cast<double>(offset) + moving + static_cast<double>(p.l + p.o));
      state = State::sending;
      later_on(BusEvent::send_finished, static_cast<double>(offset) + moving);
    }

    void finish_receiving() {
      last_transfer = channel_.context.queue.now();
      previous = state;
      // As LogGP.cc does: an end that has more to receive keeps its state, and sends nothing in between.
      if (receives.size() < 2) state = State::free;
      Request request = receives.front();
      receives.pop_front();
      if (request.processed) {
        request.processed = false;
        if (memory) {
          run_errand(waiting_to_process, request, BusEvent::process, false);
        } else {
          processing.push_back(request);
        }
        if (!is_processing && !processing.empty()) start_processing();
      } else {
        pass_on(request);
      }
    }

    void finish_processing() {
      is_processing = false;
      const Request request = processing.front();
      processing.pop_front();
      pass_on(request);
      if (!processing.empty()) start_processing();
    }

    // What is received, and processed where it should be, goes back or is handed over.
    void pass_on(Request request) {
      if (request.returned) {
        request.returned = false;
        if (memory) {
          run_errand(waiting_to_send, request, BusEvent::send_back, false);
        } else {
          sends.push_back(request);
        }
      } else if (memory) {
        run_errand(retiring, request, BusEvent::retire, false);
      } else {
        hand_over(request);
      }
    }

    void start_processing() {
      is_processing = true;
      const ChannelParameters& p = channel_.parameters;
      later_on(BusEvent::processing_finished,
               // Hundreds of bytes and 50 ns besides, LogGP.cc's integers.
               static_cast<double>(processing.front().bytes / 100 * p.reduction_delay + 50));
    }

    // Sends the request across the memory bus; `afterwards` happens here when it is there.
    void run_errand(std::list<Request>& list, const Request& request, BusEvent afterwards, bool from_memory) {
      list.push_back(request);
      Request crossing;
      crossing.bytes = request.bytes;
      crossing.errand_of = this;
      crossing.errand = std::prev(list.end());
      crossing.afterwards = afterwards;
      // Requests from the client fetch from memory; everything received is first written to it, and what
      // comes back from processing or is to be returned is passed through again.
      crossing.returned = !from_memory && afterwards != BusEvent::retire;
      (from_memory ? memory->far : memory->near).request(crossing);
    }

    void hand_over(const Request& request) {
      if (request.errand_of == nullptr) {
        channel_.context.queue.handler(channel_.client).handle(request.argument);
        return;
      }
      // The errand's place in the list of the end that it is for, so that it is found in O(1).
      request.errand_of->errand = request.errand;
      request.errand_of->happens(request.afterwards);
    }

    void later_on(BusEvent event, double ns) {
      const Time time = later(channel_.context.queue.now(), nanoseconds(static_cast<std::int64_t>(ns)));
      channel_.context.order.schedule(channel_.rank, time, target, static_cast<std::uint64_t>(event));
    }

    Channel& channel_;
    End& partner;
    std::uint32_t target = 0;
    Channel* memory = nullptr;  // behind this end
    State state = State::free, previous = State::free;
    bool is_processing = false;
    int in_a_row = 0;
    Time last_transfer;
    std::list<Request> sends, receives, processing, waiting_to_send, waiting_to_process, retiring;
    std::list<Request>::iterator errand;
  };

  struct Channel {
    Channel(const ChannelParameters& parameters_, std::int32_t rank_, const RunContext& context_,
            std::uint32_t client_)
        : parameters(parameters_),
          rank(rank_),
          context(context_),
          client(client_),
          near(*this, far),
          far(*this, near) {}

    ChannelParameters parameters;
    std::int32_t rank;
    RunContext context;
    std::uint32_t client;  // handler of the queue
    End near, far;         // of the memory side, of the network side
  };

  Channel outer_, inner_;
};

SharedBuses::SharedBuses(const RunContext& context, const SystemLayer& system, std::uint32_t target) {
  for (std::int32_t rank = 0; system.shared_bus && rank < context.graph.ranks; ++rank)
    buses_.push_back(std::make_unique<Bus>(context, system, rank, target));
}

SharedBuses::~SharedBuses() = default;

void SharedBuses::cross(std::int32_t rank, bool to_endpoint, std::int64_t bytes, bool processed,
                        bool returned, std::uint64_t argument) {
  buses_[static_cast<std::size_t>(rank)]->cross(to_endpoint, bytes, processed, returned, argument);
}

}  // namespace armilla
