// A program that launches graphs, on the driver API: `graphs CUBIN CASE N`. All kernels are saxpy; `a` tells
// which.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "graph_calls.h"

extern "C" {
CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuStreamCreate(CUstream*, unsigned);
CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, std::size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, std::size_t);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream, void**, void**);
}

namespace {

constexpr int kN = 1000;

#define CHECK(call)                                                  \
  do {                                                               \
    if (const CUresult result_ = call; result_ != CUDA_SUCCESS) {    \
      std::printf("%s gave %d\n", #call, static_cast<int>(result_)); \
      std::exit(1);                                                  \
    }                                                                \
  } while (false)

CUdeviceptr uploaded() {
  CUdeviceptr p = 0;
  std::vector<float> values(kN);
  for (int i = 0; i < kN; ++i) values[i] = static_cast<float>(i * 37 % 1001);
  CHECK(cuMemAlloc_v2(&p, kN * 4));
  CHECK(cuMemcpyHtoD_v2(p, values.data(), kN * 4));
  return p;
}

double sum(CUdeviceptr p) {
  std::vector<float> values(kN);
  CHECK(cuMemcpyDtoH_v2(values.data(), p, kN * 4));
  double total = 0;
  for (const float v : values) total += v;
  return total;
}

CUfunction saxpy = nullptr, other_saxpy = nullptr;

CUfunction loaded(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(&module, image.data()));
  CHECK(cuModuleGetFunction(&function, module, "saxpy"));
  return function;
}

struct Call {
  CUdeviceptr y, x;
  float a;
  int n = kN;
  void* pointers[4] = {&y, &x, &a, &n};
  Call(CUdeviceptr to, CUdeviceptr from, float factor) : y(to), x(from), a(factor) {}
  [[nodiscard]] CUDA_KERNEL_NODE_PARAMS_v2 parameters() {
    return {saxpy, 4, 1, 1, 256, 1, 1, 0, pointers, nullptr, nullptr, nullptr};
  }
  void launch(CUstream stream = nullptr) {
    CHECK(cuLaunchKernel(saxpy, 4, 1, 1, 256, 1, 1, 0, stream, pointers, nullptr));
  }
};

int hosts = 0;
void count_by(void* by) { hosts += *static_cast<int*>(by); }

// A graph that is made of one node after the other.
class Chain {
 public:
  Chain() { CHECK(cuGraphCreate(&graph, 0)); }
  CUgraphNode kernel(Call call, CUfunction function = saxpy) {
    CUDA_KERNEL_NODE_PARAMS_v2 p = call.parameters();
    p.func = function;
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddKernelNode_v2(&node, graph, &last_, before(), &p));
    return last_ = node;
  }
  CUgraphNode host(int* by) {
    const CUDA_HOST_NODE_PARAMS p{count_by, by};
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddHostNode(&node, graph, &last_, before(), &p));
    return last_ = node;
  }
  CUgraphNode set(CUdeviceptr to, unsigned value) {
    const CUDA_MEMSET_NODE_PARAMS p{to, 0, value, 1, kN * 4, 1};
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddMemsetNode(&node, graph, &last_, before(), &p, nullptr));
    return last_ = node;
  }
  CUgraphNode copy(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D p{};
    p.srcDevice = from, p.dstDevice = to, p.WidthInBytes = kN * 4, p.Height = p.Depth = 1;
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddMemcpyNode(&node, graph, &last_, before(), &p, nullptr));
    return last_ = node;
  }
  CUgraphNode child(CUgraph of) {
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddChildGraphNode(&node, graph, &last_, before(), of));
    return last_ = node;
  }
  CUgraphNode alloc() {
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddMemAllocNode(&node, graph, &last_, before(), nullptr));
    return last_ = node;
  }
  // What follows waits for nothing.
  void restart() { last_ = nullptr; }
  [[nodiscard]] CUgraphExec instantiated() const {
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
  }
  CUgraph graph = nullptr;

 private:
  [[nodiscard]] std::size_t before() const { return last_ != nullptr ? 1 : 0; }
  CUgraphNode last_ = nullptr;
};

CUgraph recorded(CUstream stream, CUdeviceptr y, CUdeviceptr x, float first) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int i = 0; i < 3; ++i) Call(y, x, first + static_cast<float>(i)).launch(stream);
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

}  // namespace

int main(int, char** argv) {
  const std::string name = argv[3];
  const int times = std::atoi(argv[4]);
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, 1));
  saxpy = loaded(argv[1]);
  const CUdeviceptr x = uploaded(), y = uploaded(), z = uploaded(), w = uploaded();
  int one = 1, hundred = 100, million = 1000000;
  CUgraphExec exec = nullptr;
  if (name == "threads") {  // each with memory of its own
    std::vector<std::thread> threads;
    for (const CUdeviceptr to : {y, z, w}) {
      threads.emplace_back([=] {
        CHECK(cuCtxSetCurrent(context));
        for (int round = 0; round < times; ++round) {
          Chain chain;
          chain.kernel({to, x, 1}), chain.kernel({to, x, 2}), chain.kernel({to, x, -3});
          CUgraphExec own = chain.instantiated();
          CHECK(cuGraphDestroy(chain.graph));
          for (int k = 0; k < 3; ++k) CHECK(cuGraphLaunch(own, nullptr));
          Call(to, x, 0.5f).launch();
          CHECK(cuCtxSynchronize());
          CHECK(cuGraphExecDestroy(own));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::printf("%.3f %.3f %.3f\n", sum(y), sum(z), sum(w));
    return 0;
  }
  if (name == "recorded" || name == "updated_whole") {
    CUgraph graph = recorded(stream, y, x, 1);
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphDestroy(graph));
    if (name == "updated_whole") {
      graph = recorded(stream, y, x, 11);
      CHECK(cuGraphExecUpdate_v2(exec, graph, nullptr));
      CHECK(cuGraphDestroy(graph));
    }
  } else if (name == "unknown") {
    Chain chain;
    CUgraphNode first = chain.kernel({y, x, 1});
    chain.kernel({y, x, 2}), chain.kernel({y, x, 3});
    exec = chain.instantiated();
    CHECK(cuGraphNodeSetEnabled(exec, first, 0));
    CHECK(cuGraphExecUpdate_v2(exec, chain.graph, nullptr));
    CHECK(cuGraphNodeSetEnabled(exec, first, 0));
    CHECK(cuGraphDestroy(chain.graph));
    for (int k = 0; k < 5000; ++k) Call(y, x, 0).launch();  // until not every launch is timed
  } else if (name == "names") {
    other_saxpy = loaded(argv[2]);
    Chain chain;
    chain.kernel({y, x, 1}), chain.kernel({y, x, 2}, other_saxpy), chain.kernel({y, x, 3});
    exec = chain.instantiated();
    CHECK(cuGraphDestroy(chain.graph));
  } else if (name == "dense") {  // each waits for all before it
    CUgraph graph = nullptr;
    std::vector<CUgraphNode> nodes;
    CHECK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 8; ++i) {
      Call call(y, x, static_cast<float>(i));
      const CUDA_KERNEL_NODE_PARAMS_v2 p = call.parameters();
      CUgraphNode node = nullptr;
      CHECK(cuGraphAddKernelNode_v2(&node, graph, nodes.data(), nodes.size(), &p));
      nodes.push_back(node);
    }
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphDestroy(graph));
  } else if (name == "child" || name == "replaced") {
    Chain inner, chain, other;
    inner.kernel({y, x, 2}), inner.host(&one), inner.kernel({y, x, 3}), inner.kernel({y, x, 4});
    other.kernel({y, x, 12}), other.host(&million), other.kernel({y, x, 13}), other.kernel({y, x, 14});
    chain.kernel({y, x, 1});
    CUgraphNode node = chain.child(inner.graph);
    chain.host(&hundred), chain.kernel({y, x, 5});
    exec = chain.instantiated();
    if (name == "replaced") CHECK(cuGraphExecChildGraphNodeSetParams(exec, node, other.graph));
    CHECK(cuGraphDestroy(inner.graph));
    CHECK(cuGraphDestroy(other.graph));
    CHECK(cuGraphDestroy(chain.graph));
  } else {
    // memset, 1.5, host, 0.5, copy, 2, host; beside them 3.
    Chain chain;
    if (name == "alloc") chain.alloc();
    CUgraphNode filled = chain.set(z, 0);
    chain.kernel({y, x, 1.5f});
    CUgraphNode host = chain.host(&one);
    CUgraphNode middle = chain.kernel({y, x, 0.5f});
    if (name == "attributes") {
      CUlaunchAttribute cluster{};
      cluster.value.clusterDim = {2, 1, 1};
      CHECK(cuGraphKernelNodeSetAttribute(middle, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster.value));
    }
    chain.copy(z, y), chain.kernel({z, x, 2}), chain.host(&hundred);
    chain.restart();
    chain.kernel({w, x, 3});
    exec = chain.instantiated();
    if (name == "changed") {
      Call call(y, x, 4);
      const CUDA_KERNEL_NODE_PARAMS_v2 p = call.parameters();
      const CUDA_HOST_NODE_PARAMS h{count_by, &million};
      const CUDA_MEMSET_NODE_PARAMS m{w, 0, 0, 1, kN * 4, 1};
      CHECK(cuGraphExecKernelNodeSetParams_v2(exec, middle, &p));
      CHECK(cuGraphExecHostNodeSetParams(exec, host, &h));
      CHECK(cuGraphExecMemsetNodeSetParams(exec, filled, &m, nullptr));
    }
    if (name == "disabled") CHECK(cuGraphNodeSetEnabled(exec, middle, 0));
    CHECK(cuGraphDestroy(chain.graph));
  }
  for (int k = 0; k < times; ++k) {
    CHECK(name == "per_thread" ? cuGraphLaunch_ptsz(exec, nullptr) : cuGraphLaunch(exec, stream));
    if (name == "mixed" && k == 0) Call(y, x, 0.25f).launch();
  }
  CHECK(cuCtxSynchronize());
  CHECK(cuGraphExecDestroy(exec));
  std::printf("%.3f %.3f %.3f hosts %d\n", sum(y), sum(z), sum(w), hosts);
  return 0;
}
