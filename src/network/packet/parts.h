// The parts of a packet simulation, each knowing only those before it. Transports know those up to hosts.
#pragma once

#include "network/packet/connections.h"
#include "network/packet/core.h"
#include "network/packet/failures.h"
#include "network/packet/flows.h"
#include "network/packet/hosts.h"
#include "network/packet/links.h"
#include "network/packet/mail.h"
#include "network/packet/switches.h"
#include "network/packet/way_finder.h"

namespace armilla::packets {

struct Parts {
  Parts(const FlowJob& job, Watcher& watcher)
      : core(job, watcher),
        links(core),
        ways(core, links),
        flows(core, links, ways),
        mail(core, flows),
        losses(core, links, flows),
        switches(core, links, ways, flows, losses),
        hosts(core, links, ways, flows, mail),
        connections(hosts, switches) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Core core;
  Links links;
  WayFinder ways;
  Flows flows;
  Mail mail;
  Losses losses;
  Switches switches;
  Hosts hosts;
  Connections connections;
};

}  // namespace armilla::packets
