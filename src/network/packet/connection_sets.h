// Connections that share a port, for data or acknowledgements, directly or over others, are a set, and so are
// those at a switch whose buffer once came near to pausing someone: what happens in one has no influence on
// another, until a new connection, or a buffer, joins them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace armilla {

class ConnectionSets {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Set {
    std::vector<std::uint32_t> connections, ports;
    std::uint32_t first = kNone;  // of the connections, by number
  };

  explicit ConnectionSets(std::size_t ports) : of_port_(ports, kNone) {}

  // The number of its set, kNone: it is in none.
  std::uint32_t of_port(std::uint32_t port) const { return of_port_[port]; }
  std::uint32_t of_connection(std::uint32_t connection) const {
    return connection < of_connection_.size() ? of_connection_[connection] : kNone;
  }
  Set& operator[](std::uint32_t set) { return sets_[set]; }
  const Set& operator[](std::uint32_t set) const { return sets_[set]; }

  // Returns the set of a new connection over these ports: those that had some of them become one. For each
  // two it is told beforehand by `join(into, from)`, and the second is empty from then on.
  template <class Join>
  std::uint32_t add(std::uint32_t connection, const std::vector<std::uint32_t>& ports, const Join& join) {
    std::uint32_t into = unite(ports, join);
    if (into == kNone) {
      into = static_cast<std::uint32_t>(sets_.size());
      sets_.emplace_back();
    }
    if (of_connection_.size() <= connection) of_connection_.resize(connection + std::size_t{1}, kNone);
    of_connection_[connection] = into;
    Set& set = sets_[into];
    set.connections.push_back(connection);
    set.first = std::min(set.first, connection);
    for (const std::uint32_t port : ports) {
      if (std::exchange(of_port_[port], into) != into) set.ports.push_back(port);
    }
    return into;
  }
  // The same without a connection; kNone: none of the ports is in a set.
  template <class Join>
  std::uint32_t unite(const std::vector<std::uint32_t>& ports, const Join& join) {
    std::uint32_t into = kNone;
    for (const std::uint32_t port : ports) {
      std::uint32_t other = of_port_[port];
      if (other == kNone || other == into) continue;
      if (into == kNone) {
        into = other;
        continue;
      }
      if (sets_[other].connections.size() > sets_[into].connections.size()) std::swap(into, other);
      join(into, other);
      merge(sets_[into], std::exchange(sets_[other], {}), into);
    }
    return into;
  }

 private:
  void merge(Set& to, const Set& from, std::uint32_t number) {
    for (const std::uint32_t moved : from.connections) of_connection_[moved] = number;
    for (const std::uint32_t moved : from.ports) of_port_[moved] = number;
    to.connections.insert(to.connections.end(), from.connections.begin(), from.connections.end());
    to.ports.insert(to.ports.end(), from.ports.begin(), from.ports.end());
    to.first = std::min(to.first, from.first);
  }

  std::vector<Set> sets_;
  std::vector<std::uint32_t> of_port_, of_connection_;
};

}  // namespace armilla
