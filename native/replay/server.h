// The commands of protocol.h, on a session.
#pragma once

#include "replay/protocol.h"
#include "replay/session.h"

namespace kerncap::replay {

// Answers requests until quit or the end of input; the exit status of the process.
int serve(Channel& channel, Session& session);

// Says how `session` was set up: the first answer.
void greet(Channel& channel, const Session& session, const snapshot::CaptureReader& capture);

}  // namespace kerncap::replay
