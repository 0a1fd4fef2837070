// Graphs: one of 5,000 kernel nodes in a chain, captured from a stream and launched twice; one with parallel branches, copies
// and fills; one whose node gets other arguments.
#include "check.h"

__global__ void link_of_chain(unsigned* value, unsigned add) {
  if (threadIdx.x == 0) *value = *value * 5 + add;
}

__global__ void branch(unsigned* values, unsigned add) { values[threadIdx.x] += add * threadIdx.x; }

int main() {
  constexpr int nodes = 5000;
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  unsigned* value = device_array(std::vector<unsigned>(1, 1));

  hipGraph_t graph;
  hipGraphExec_t exec;
  HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  for (unsigned k = 0; k < nodes; ++k) link_of_chain<<<1, 64, 0, stream>>>(value, k);
  HIP(hipStreamEndCapture(stream, &graph));
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  unsigned expected = 1;
  for (int round = 0; round < 2; ++round) {
    HIP(hipGraphLaunch(exec, stream));
    HIP(hipStreamSynchronize(stream));
    launched("link_of_chain", nodes);
    for (unsigned k = 0; k < nodes; ++k) expected = expected * 5 + k;
    EXPECT(host_vector(value, 1)[0] == expected);
  }

  // Eight branches between a fill and a copy.
  constexpr int branches = 8, width = 64;
  unsigned* area = nullptr;
  HIP(hipMalloc(&area, branches * width * sizeof(unsigned)));
  std::vector<unsigned> result(branches * width);
  hipGraph_t fan;
  HIP(hipGraphCreate(&fan, 0));
  hipGraphNode_t fill, copy, kernels[branches];
  hipMemsetParams clear{};
  clear.dst = area;
  clear.elementSize = 4;
  clear.width = branches * width;
  clear.height = 1;
  clear.value = 100;
  HIP(hipGraphAddMemsetNode(&fill, fan, nullptr, 0, &clear));
  for (unsigned b = 0; b < branches; ++b) {
    unsigned* part = area + b * width;
    void* arguments[] = {&part, &b};
    hipKernelNodeParams parameters{};
    parameters.func = reinterpret_cast<void*>(&branch);
    parameters.gridDim = dim3(1);
    parameters.blockDim = dim3(width);
    parameters.kernelParams = arguments;
    HIP(hipGraphAddKernelNode(&kernels[b], fan, &fill, 1, &parameters));
  }
  HIP(hipGraphAddMemcpyNode1D(&copy, fan, kernels, branches, result.data(), area, result.size() * sizeof(unsigned),
                              hipMemcpyDeviceToHost));
  hipGraphExec_t fan_exec;
  HIP(hipGraphInstantiate(&fan_exec, fan, nullptr, nullptr, 0));
  HIP(hipGraphLaunch(fan_exec, stream));
  HIP(hipStreamSynchronize(stream));
  launched("branch", branches);
  for (unsigned b = 0; b < branches; ++b)
    for (unsigned t = 0; t < width; ++t) EXPECT(result[b * width + t] == 100 + b * t);

  // Other arguments for one node of the instantiated graph.
  unsigned* part = area;
  unsigned add = 1000;
  void* arguments[] = {&part, &add};
  hipKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(&branch);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(width);
  parameters.kernelParams = arguments;
  HIP(hipGraphExecKernelNodeSetParams(fan_exec, kernels[0], &parameters));
  HIP(hipGraphLaunch(fan_exec, stream));
  HIP(hipStreamSynchronize(stream));
  launched("branch", branches);
  for (unsigned t = 0; t < width; ++t) EXPECT(result[t] == 100 + 1000 * t);
  HIP(hipGraphExecDestroy(fan_exec));
  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphDestroy(fan));
  HIP(hipGraphDestroy(graph));
  return finish();
}
