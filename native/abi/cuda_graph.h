// The part of NVIDIA's driver API that is about graphs, declared anew as cuda.h is. Drivers older than
// CUDA 12.3 have not all of it.
#pragma once

#include <cstddef>

#include "abi/cuda.h"

namespace kerncap::abi {

enum CUgraphNodeType : int {
  CU_GRAPH_NODE_TYPE_KERNEL = 0,
  CU_GRAPH_NODE_TYPE_MEMCPY = 1,
  CU_GRAPH_NODE_TYPE_MEMSET = 2,
  CU_GRAPH_NODE_TYPE_HOST = 3,
  CU_GRAPH_NODE_TYPE_GRAPH = 4,
  CU_GRAPH_NODE_TYPE_EMPTY = 5,
  CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
  CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
  CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
};

enum CUgraphInstantiate_flags : int { CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8 };

struct CUDA_KERNEL_NODE_PARAMS_v2 {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
  CUkernel kern;  // where func is null
  CUcontext ctx;
};

struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  unsigned long long flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  int result_out;
};

struct CUgraphEdgeData {
  unsigned char from_port;
  unsigned char to_port;
  unsigned char type;
  unsigned char reserved[5];
};

// name, exported symbol, parameters.
#define KERNCAP_CUDA_GRAPH_FUNCTIONS(X)                                                                     \
  X(cuFuncGetName, "cuFuncGetName", (const char** name, CUfunction function))                               \
  X(cuKernelGetName, "cuKernelGetName", (const char** name, CUkernel kernel))                               \
  X(cuGraphCreate, "cuGraphCreate", (CUgraph * graph, unsigned flags))                                      \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph graph))                                                      \
  X(cuGraphClone, "cuGraphClone", (CUgraph * clone, CUgraph graph))                                         \
  X(cuGraphNodeFindInClone, "cuGraphNodeFindInClone",                                                       \
    (CUgraphNode * node, CUgraphNode original, CUgraph clone))                                              \
  X(cuGraphGetNodes, "cuGraphGetNodes", (CUgraph graph, CUgraphNode * nodes, std::size_t* count))           \
  X(cuGraphGetEdges, "cuGraphGetEdges_v2",                                                                  \
    (CUgraph graph, CUgraphNode * from, CUgraphNode * to, CUgraphEdgeData * data, std::size_t* count))      \
  X(cuGraphNodeGetType, "cuGraphNodeGetType", (CUgraphNode node, CUgraphNodeType * type))                   \
  X(cuGraphNodeGetDependencies, "cuGraphNodeGetDependencies_v2",                                            \
    (CUgraphNode node, CUgraphNode * before, CUgraphEdgeData * data, std::size_t* count))                   \
  X(cuGraphNodeGetDependentNodes, "cuGraphNodeGetDependentNodes_v2",                                        \
    (CUgraphNode node, CUgraphNode * behind, CUgraphEdgeData * data, std::size_t* count))                   \
  X(cuGraphAddDependencies, "cuGraphAddDependencies_v2",                                                    \
    (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,            \
     std::size_t count))                                                                                    \
  X(cuGraphDestroyNode, "cuGraphDestroyNode", (CUgraphNode node))                                           \
  X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2",                                                        \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* before, std::size_t count,                       \
     const CUDA_KERNEL_NODE_PARAMS_v2* parameters))                                                         \
  X(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2",                                            \
    (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 * parameters))                                            \
  X(cuGraphKernelNodeGetAttribute, "cuGraphKernelNodeGetAttribute",                                         \
    (CUgraphNode node, CUlaunchAttributeID id, void* value))                                                \
  X(cuGraphKernelNodeCopyAttributes, "cuGraphKernelNodeCopyAttributes", (CUgraphNode to, CUgraphNode from)) \
  X(cuGraphAddChildGraphNode, "cuGraphAddChildGraphNode",                                                   \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* before, std::size_t count, CUgraph child))       \
  X(cuGraphChildGraphNodeGetGraph, "cuGraphChildGraphNodeGetGraph", (CUgraphNode node, CUgraph * graph))    \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                                      \
    (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                                          \
  X(cuGraphNodeSetEnabled, "cuGraphNodeSetEnabled", (CUgraphExec exec, CUgraphNode node, unsigned enabled)) \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec exec))                                           \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))

// Calls that change one node of an executable graph, and the function that makes the same change to a node of
// a graph: name here and exported symbol. Besides the node all of them take one pointer.
#define KERNCAP_CUDA_NODE_CHANGES(X)                                                           \
  X(cuGraphExecKernelNodeSetParams, change_kernel_v1, "cuGraphKernelNodeSetParams")            \
  X(cuGraphExecKernelNodeSetParams_v2, change_kernel, "cuGraphKernelNodeSetParams_v2")         \
  X(cuGraphExecMemcpyNodeSetParams, change_memcpy, "cuGraphMemcpyNodeSetParams")               \
  X(cuGraphExecMemsetNodeSetParams, change_memset, "cuGraphMemsetNodeSetParams")               \
  X(cuGraphExecHostNodeSetParams, change_host, "cuGraphHostNodeSetParams")                     \
  X(cuGraphExecEventRecordNodeSetEvent, change_event_record, "cuGraphEventRecordNodeSetEvent") \
  X(cuGraphExecEventWaitNodeSetEvent, change_event_wait, "cuGraphEventWaitNodeSetEvent")       \
  X(cuGraphExecExternalSemaphoresSignalNodeSetParams, change_semaphores_signal,                \
    "cuGraphExternalSemaphoresSignalNodeSetParams")                                            \
  X(cuGraphExecExternalSemaphoresWaitNodeSetParams, change_semaphores_wait,                    \
    "cuGraphExternalSemaphoresWaitNodeSetParams")                                              \
  X(cuGraphExecBatchMemOpNodeSetParams, change_batch, "cuGraphBatchMemOpNodeSetParams")        \
  X(cuGraphExecNodeSetParams, change_any, "cuGraphNodeSetParams")

struct CudaGraphs {
#define KERNCAP_CUDA_MEMBER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  KERNCAP_CUDA_GRAPH_FUNCTIONS(KERNCAP_CUDA_MEMBER)
#undef KERNCAP_CUDA_MEMBER
#define KERNCAP_CUDA_MEMBER(call, name, symbol) \
  CUresult (*name)(CUgraphNode node, const void* what) = nullptr;
  KERNCAP_CUDA_NODE_CHANGES(KERNCAP_CUDA_MEMBER)
#undef KERNCAP_CUDA_MEMBER
};

}  // namespace kerncap::abi
