// For tests: a driver with one GPU whose memory is the host's, and an NVRTC whose code is empty.
// Kernels do nothing. It counts what is alive, and one call, by its number, can be made to fail.
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;

static int calls, fail_at, fail_status, poisoned, live, capturing;
static long launches, recorded, replays;
static const char* names[4096];

void fake_cuda_reset(int at, int status) {
  calls = poisoned = capturing = 0;
  launches = recorded = replays = 0;
  fail_at = at;
  fail_status = status;
}
int fake_cuda_live(void) { return live; }
int fake_cuda_calls(void) { return calls; }
const char* fake_cuda_call(int number) { return names[number % 4096]; }
long fake_cuda_launches(void) { return launches; }
long fake_cuda_recorded(void) { return recorded; }
long fake_cuda_replays(void) { return replays; }

// Errors from 700 on stay: the context is lost, as after an illegal address.
static int enter(const char* name) {
  names[++calls % 4096] = name;
  if (poisoned) return poisoned;
  if (calls != fail_at) return 0;
  if (fail_status >= 700) poisoned = fail_status;
  return fail_status;
}
#define ENTER \
  do { int status = enter(__func__); if (status) return status; } while (0)
// What gives back works always, but for a lost context's answer.
#define LEAVE(name) (names[++calls % 4096] = name, poisoned)

int cuInit(unsigned flags) { (void)flags; ENTER; return 0; }
int cuDriverGetVersion(int* version) { ENTER; *version = 13000; return 0; }
int cuDeviceGetCount(int* count) { ENTER; *count = 1; return 0; }
int cuDeviceGet(int* device, int ordinal) { ENTER; *device = ordinal; return 0; }
int cuDeviceGetName(char* name, int size, int device) {
  (void)device;
  ENTER;
  strncpy(name, "Fake GPU", (size_t)size);
  return 0;
}
int cuDeviceGetUuid_v2(char* uuid, int device) {
  (void)device;
  ENTER;
  for (int i = 0; i < 16; ++i) uuid[i] = (char)(i * 17);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  ENTER;
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 132;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  ENTER;
  *context = (void*)1;
  ++live;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; --live; return LEAVE(__func__); }
int cuCtxSetCurrent(void* context) { (void)context; ENTER; return 0; }
int cuMemGetInfo_v2(size_t* available, size_t* total) {
  ENTER;
  *available = 1000;
  *total = 2000;
  return 0;
}
int cuMemAlloc_v2(address* to, size_t bytes) {
  ENTER;
  *to = (address)(size_t)calloc(1, bytes);
  ++live;
  return 0;
}
int cuMemFree_v2(address from) { free((void*)(size_t)from); --live; return LEAVE(__func__); }
int cuMemHostAlloc(void** to, size_t bytes, unsigned flags) {
  (void)flags;
  ENTER;
  *to = calloc(1, bytes);
  ++live;
  return 0;
}
int cuMemFreeHost(void* from) { free(from); --live; return LEAVE(__func__); }
int cuMemcpyHtoDAsync_v2(address to, const void* from, size_t bytes, void* stream) {
  (void)stream;
  ENTER;
  memcpy((void*)(size_t)to, from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, address from, size_t bytes, void* stream) {
  (void)stream;
  ENTER;
  memcpy(to, (const void*)(size_t)from, bytes);
  return 0;
}
int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void* stream) {
  return cuMemcpyDtoHAsync_v2((void*)(size_t)to, from, bytes, stream);
}
struct rows {
  size_t from_x, from_y;
  int from_type;
  const void* from_host;
  address from;
  void* from_array;
  size_t from_pitch, to_x, to_y;
  int to_type;
  void* to_host;
  address to;
  void* to_array;
  size_t to_pitch, width, height;
};
int cuMemcpy2DAsync_v2(const struct rows* r, void* stream) {
  (void)stream;
  ENTER;
  for (size_t i = 0; i < r->height; ++i) {
    memcpy((char*)(size_t)r->to + i * r->to_pitch, (const char*)(size_t)r->from + i * r->from_pitch,
           r->width);
  }
  return 0;
}
int cuMemsetD8Async(address to, unsigned char value, size_t bytes, void* stream) {
  (void)stream;
  ENTER;
  memset((void*)(size_t)to, value, bytes);
  return 0;
}
static int make(void** object) {
  *object = malloc(1);
  ++live;
  return 0;
}
static int drop(void* object, const char* name) {
  free(object);
  --live;
  return LEAVE(name);
}
int cuStreamCreate(void** stream, unsigned flags) { (void)flags; ENTER; return make(stream); }
int cuStreamDestroy_v2(void* stream) { return drop(stream, __func__); }
int cuStreamSynchronize(void* stream) { (void)stream; ENTER; return 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) {
  (void)stream, (void)mode;
  ENTER;
  capturing = 1;
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  (void)stream;
  capturing = 0;
  ENTER;
  return make(graph);
}
int cuGraphDestroy(void* graph) { return drop(graph, __func__); }
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  (void)graph, (void)flags;
  ENTER;
  return make(exec);
}
int cuGraphLaunch(void* exec, void* stream) { (void)exec, (void)stream; ENTER; ++replays; return 0; }
int cuGraphExecDestroy(void* exec) { return drop(exec, __func__); }
int cuEventCreate(void** event, unsigned flags) { (void)flags; ENTER; return make(event); }
int cuEventDestroy_v2(void* event) { return drop(event, __func__); }
int cuEventRecord(void* event, void* stream) { (void)event, (void)stream; ENTER; return 0; }
int cuEventSynchronize(void* event) { (void)event; ENTER; return 0; }
int cuEventElapsedTime_v2(float* ms, void* start, void* end) {
  (void)start, (void)end;
  ENTER;
  *ms = 1;
  return 0;
}
int cuModuleLoadData(void** module, const void* image) { (void)image; ENTER; return make(module); }
int cuModuleUnload(void* module) { return drop(module, __func__); }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)name;
  ENTER;
  *function = module;
  return 0;
}
int cuLaunchKernelEx(const void* config, void* function, void** arguments, void** extra) {
  (void)config, (void)function, (void)arguments, (void)extra;
  ENTER;
  if (capturing) {
    ++recorded;
  } else {
    ++launches;
  }
  return 0;
}
int cuGetErrorName(int status, const char** name) {
  *name = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == 2 ? "out of memory" : "something else";
  return 0;
}

int nvrtcVersion(int* major, int* minor) { *major = 13; *minor = 0; return 0; }
const char* nvrtcGetErrorString(int status) { return status == 6 ? "compilation" : "other"; }
int nvrtcCreateProgram(void** program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names_of) {
  (void)source, (void)name, (void)headers, (void)texts, (void)names_of;
  return make(program);
}
int nvrtcDestroyProgram(void** program) { return drop(*program, __func__), 0; }
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  (void)program, (void)count, (void)options;
  return getenv("FAKE_NVRTC_FAILS") != NULL ? 6 : 0;
}
int nvrtcGetCUBINSize(void* program, size_t* size) { (void)program; *size = 5; return 0; }
int nvrtcGetCUBIN(void* program, char* bytes) { (void)program; memcpy(bytes, "empty", 5); return 0; }
int nvrtcGetProgramLogSize(void* program, size_t* size) { (void)program; *size = 9; return 0; }
int nvrtcGetProgramLog(void* program, char* log) { (void)program; memcpy(log, "fake log", 9); return 0; }
