// Kernels within CUDA graphs: `graphs CASE [N]` makes one graph, destroys what it was made of, launches it N times
// and prints a checksum of the results and how often its host nodes ran.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                                      \
  do {                                                                                                   \
    const cudaError_t e_ = (call);                                                                       \
    if (e_ != cudaSuccess) {                                                                             \
      std::printf("%s:%d %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_));                  \
      std::exit(1);                                                                                      \
    }                                                                                                    \
  } while (0)

extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void clamp(float* y, float most, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && y[i] > most) y[i] -= most;
}
extern "C" __global__ void cooperative(float* data, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) data[i] += 1.0f;
  grid.sync();
  if (grid.thread_rank() == 0) data[0] += data[n - 1];
}
extern "C" __global__ void clustered(float* out) {
  __shared__ float mine;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = blockIdx.x * 10;
  cluster.sync();
  float sum = 0;
  for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += *cluster.map_shared_rank(&mine, r);
  if (threadIdx.x == 0) out[blockIdx.x] += sum;
  cluster.sync();
}
extern "C" __global__ void dependent(float* y, const float* x, int n) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] * 0.5f + x[n - 1 - i];
}

constexpr int kN = 100000;
constexpr int kBlock = 256;
constexpr int kGrid = (kN + kBlock - 1) / kBlock;

float* uploaded() {
  float* p = nullptr;
  std::vector<float> v(kN);
  for (int i = 0; i < kN; ++i) v[i] = static_cast<float>((i * 37) % 1001);
  CHECK(cudaMalloc(&p, kN * sizeof(float)));
  CHECK(cudaMemcpy(p, v.data(), kN * sizeof(float), cudaMemcpyHostToDevice));
  return p;
}
std::uint64_t total = 1469598103934665603ull;
void add_device(const float* device) {
  std::vector<unsigned char> host(kN * sizeof(float));
  CHECK(cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost));
  for (const unsigned char byte : host) total = (total ^ byte) * 1099511628211ull;
}

int hosts = 0;
void host_node(void* by) { hosts += *static_cast<int*>(by); }
int one = 1, hundred = 100, million = 1000000;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
long resident_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::atol(line.c_str() + 6);
  return 0;
}

cudaStream_t stream;
float *x, *y, *z;

template <typename Body>
cudaGraph_t recorded(Body body) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  body();
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}
// The graph itself goes, as PyTorch has it.
cudaGraphExec_t instantiated(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return exec;
}

cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t after, float* to, float a) {
  int n = kN;
  void* arguments[] = {&to, &x, &a, &n};
  cudaKernelNodeParams p = {};
  p.func = reinterpret_cast<void*>(saxpy);
  p.gridDim = dim3(kGrid), p.blockDim = dim3(kBlock), p.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, &after, after != nullptr, &p));
  return node;
}
cudaGraphNode_t host_node(cudaGraph_t graph, cudaGraphNode_t after, int* by) {
  cudaHostNodeParams p = {host_node, by};
  cudaGraphNode_t node;
  CHECK(cudaGraphAddHostNode(&node, graph, &after, after != nullptr, &p));
  return node;
}

void chain(float first) {
  CHECK(cudaMemsetAsync(z, 0, kN * sizeof(float), stream));
  saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, first, kN);
  CHECK(cudaLaunchHostFunc(stream, host_node, &one));
  clamp<<<kGrid, kBlock, 0, stream>>>(y, 1000.0f, kN);
  saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, first + 1, kN);
  CHECK(cudaMemcpyAsync(z, y, kN * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  saxpy<<<kGrid, kBlock, 0, stream>>>(z, x, first + 2, kN);
  CHECK(cudaLaunchHostFunc(stream, host_node, &hundred));
}

// How long instantiating and updating take, and what stays resident: of `times` graphs of 1,000 kernels.
void costs(int times) {
  constexpr int kNodes = 1000;
  const auto make = [] {
    return recorded([] {
      for (int k = 0; k < kNodes; ++k) saxpy<<<1, 32, 0, stream>>>(y, x, 0.0f, 32);
    });
  };
  std::vector<cudaGraphExec_t> execs(times);
  double instantiating = 0, updating = 0, launching = 0;
  const long before = resident_kb();
  for (auto& exec : execs) {
    cudaGraph_t graph = make();
    double start = now_us();
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    instantiating += now_us() - start;
    cudaGraphExecUpdateResultInfo info;
    start = now_us();
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    updating += now_us() - start;
    CHECK(cudaGraphDestroy(graph));
  }
  const long after = resident_kb();
  for (auto& exec : execs) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    const double start = now_us();
    CHECK(cudaGraphLaunch(exec, stream));
    launching += now_us() - start;
    CHECK(cudaStreamSynchronize(stream));
  }
  std::fprintf(stderr, "instantiate %.3f update %.3f us a node, launch %.2f us, %.2f KB a node\n",
               instantiating / times / kNodes, updating / times / kNodes, launching / times,
               static_cast<double>(after - before) / times / kNodes);
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "recorded";
  const int times = argc > 2 ? std::atoi(argv[2]) : 3;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  x = uploaded(), y = uploaded(), z = uploaded();
  cudaGraphExec_t exec = nullptr;
  if (name == "recorded" || name == "default_stream") {
    exec = instantiated(recorded([] { chain(1); }));
  } else if (name == "updated") {
    exec = instantiated(recorded([] { chain(1); }));
    cudaGraph_t graph = recorded([] { chain(11); });
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    CHECK(cudaGraphDestroy(graph));
  } else if (name == "branches") {
    cudaStream_t side;
    cudaEvent_t fork, join;
    CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    exec = instantiated(recorded([&] {
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 1, kN);
      CHECK(cudaEventRecord(fork, stream));
      CHECK(cudaStreamWaitEvent(side, fork, 0));
      clamp<<<kGrid, kBlock, 0, side>>>(z, 500.0f, kN);
      saxpy<<<kGrid, kBlock, 0, side>>>(z, x, 2, kN);
      clamp<<<kGrid, kBlock, 0, stream>>>(y, 800.0f, kN);
      CHECK(cudaEventRecord(join, side));
      CHECK(cudaStreamWaitEvent(stream, join, 0));
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, z, 3, kN);
    }));
  } else if (name == "changed" || name == "disabled") {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t first = kernel_node(graph, nullptr, y, 1);
    cudaGraphNode_t host = host_node(graph, first, &one);
    cudaGraphNode_t middle = kernel_node(graph, host, y, 2);
    kernel_node(graph, middle, y, 3);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    if (name == "changed") {
      float a = 12;
      int n = kN;
      void* arguments[] = {&y, &z, &a, &n};
      cudaKernelNodeParams p = {};
      p.func = reinterpret_cast<void*>(saxpy);
      p.gridDim = dim3(kGrid), p.blockDim = dim3(kBlock), p.kernelParams = arguments;
      CHECK(cudaGraphExecKernelNodeSetParams(exec, middle, &p));
      cudaHostNodeParams h = {host_node, &million};
      CHECK(cudaGraphExecHostNodeSetParams(exec, host, &h));
    } else {
      CHECK(cudaGraphNodeSetEnabled(exec, middle, 0));
    }
    CHECK(cudaGraphDestroy(graph));
  } else if (name == "child" || name == "replaced") {
    cudaGraph_t inner, other, graph;
    CHECK(cudaGraphCreate(&inner, 0));
    CHECK(cudaGraphCreate(&other, 0));
    CHECK(cudaGraphCreate(&graph, 0));
    kernel_node(inner, host_node(inner, kernel_node(inner, nullptr, y, 2), &one), y, 3);
    kernel_node(other, host_node(other, kernel_node(other, nullptr, y, 12), &million), y, 13);
    cudaGraphNode_t first = kernel_node(graph, nullptr, y, 1), child;
    CHECK(cudaGraphAddChildGraphNode(&child, graph, &first, 1, inner));
    kernel_node(graph, host_node(graph, child, &hundred), y, 4);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    if (name == "replaced") CHECK(cudaGraphExecChildGraphNodeSetParams(exec, child, other));
    CHECK(cudaGraphDestroy(inner));
    CHECK(cudaGraphDestroy(other));
    CHECK(cudaGraphDestroy(graph));
  } else if (name == "cooperative") {
    exec = instantiated(recorded([] {
      int n = kN;
      void* arguments[] = {&y, &n};
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 1, kN);
      CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(cooperative), 64, kBlock, arguments, 0, stream));
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 2, kN);
    }));
  } else if (name == "cluster") {
    exec = instantiated(recorded([] {
      cudaLaunchConfig_t config = {};
      config.gridDim = 64, config.blockDim = 32, config.stream = stream;
      cudaLaunchAttribute attribute;
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = 8, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
      config.attrs = &attribute, config.numAttrs = 1;
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 1, kN);
      CHECK(cudaLaunchKernelEx(&config, clustered, y));
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 2, kN);
    }));
  } else if (name == "programmatic") {
    exec = instantiated(recorded([] {
      cudaLaunchConfig_t config = {};
      config.gridDim = kGrid, config.blockDim = kBlock, config.stream = stream;
      cudaLaunchAttribute attribute;
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      config.attrs = &attribute, config.numAttrs = 1;
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 1, kN);
      for (int k = 0; k < 3; ++k) CHECK(cudaLaunchKernelEx(&config, dependent, y, static_cast<const float*>(x), kN));
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 2, kN);
    }));
  } else if (name == "alloc") {
    exec = instantiated(recorded([] {
      float* t = nullptr;
      CHECK(cudaMallocAsync(&t, kN * sizeof(float), stream));
      CHECK(cudaMemcpyAsync(t, x, kN * sizeof(float), cudaMemcpyDeviceToDevice, stream));
      saxpy<<<kGrid, kBlock, 0, stream>>>(y, t, 1, kN);
      CHECK(cudaFreeAsync(t, stream));
    }));
  } else if (name == "costs") {
    costs(times);
    return 0;
  } else {
    std::printf("no case %s\n", name.c_str());
    return 2;
  }
  for (int k = 0; k < times; ++k) {
    CHECK(cudaGraphLaunch(exec, name == "default_stream" ? nullptr : stream));
    if (k == 0) saxpy<<<kGrid, kBlock, 0, name == "default_stream" ? nullptr : stream>>>(y, x, 0.25f, kN);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(exec));
  add_device(y);
  add_device(z);
  std::printf("%s %016llx hosts %d\n", name.c_str(), static_cast<unsigned long long>(total), hosts);
  return 0;
}
