#include <cstddef>
#include <string>

#include "replay/backend.h"
#include "replay/error.h"

namespace kerncap::replay {

const Agent& Runtime::pick(const std::string& name, int index) const {
  if (gpus_.empty())
    throw ReplayError(ErrorClass::device, std::string(kRuntimeName) + " " + path + " knows no GPU");
  std::string there;
  for (const Agent& agent : gpus_) there += (there.empty() ? "" : ", ") + agent.name;
  if (index >= 0) {
    if (static_cast<std::size_t>(index) >= gpus_.size()) {
      throw ReplayError(ErrorClass::device,
                        "there is no GPU " + std::to_string(index) + "; there are: " + there);
    }
    const Agent& agent = gpus_[static_cast<std::size_t>(index)];
    if (agent.name == name) return agent;
    throw ReplayError(ErrorClass::device,
                      "GPU " + std::to_string(index) + " is " + agent.name + ", the capture is of " + name);
  }
  for (const Agent& agent : gpus_) {
    if (agent.name == name) return agent;
  }
  throw ReplayError(ErrorClass::device, "the capture is of " + name + ", the GPUs here are: " + there);
}

}  // namespace kerncap::replay
