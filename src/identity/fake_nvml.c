// For tests: a management library with two GPUs, one of them hot, or none that answers. The cool
// one has the uuid FAKE_NVML_UUID where that is set, takes 100 W, and counts what the hot one
// doesn't; its power limit is always in the way, and lowers the clock where FAKE_NVML_POWER is set.
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fail(void) { return getenv("FAKE_NVML_FAILS") != NULL; }

int nvmlInit_v2(void) { return fail() ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "other"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  strncpy(text, "580.1", size);
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (void*)(size_t)(index + 1);
  return 0;
}
static int hot(void* device) { return (size_t)device == 2; }
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  strncpy(text, hot(device) ? "Hot GPU" : "Cool GPU", size);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  const char* uuid = getenv("FAKE_NVML_UUID");
  strncpy(text, hot(device) ? "GPU-hot" : uuid != NULL ? uuid : "GPU-cool", size);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long memory[3]) {
  memory[0] = 1000;
  memory[1] = memory[2] = 500;
  return hot(device) ? 3 : 0;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  *mhz = hot(device) ? 345 : 1980;
  return type == 1 ? 0 : 2;
}
int nvmlDeviceGetTemperature(void* device, int type, unsigned* celsius) {
  *celsius = hot(device) ? 91 : 40;
  return type == 0 ? 0 : 2;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 123456;
  return hot(device) ? 3 : 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *millijoules = (unsigned long long)now.tv_sec * 100000 + (unsigned long long)now.tv_nsec / 10000;
  return hot(device) ? 3 : 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = hot(device) ? 0x48 : 0x5;
  return 0;
}

// The cool GPU's clock is held down for power for as long as FAKE_NVML_POWER is set.
int nvmlDeviceGetViolationStatus(void* device, int policy, unsigned long long time[2]) {
  static unsigned long long power_ns;
  if (hot(device)) return 3;
  if (policy == 0 && getenv("FAKE_NVML_POWER") != NULL) power_ns += 1000;
  time[0] = 0;
  time[1] = policy == 0 ? power_ns : 0;
  return policy > 1;
}

struct process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
// FAKE_NVML_PROCESSES: "PID:MEMORY:SHARE ...", processes on the cool GPU; of share 0, one holds
// memory alone. The tests' own processes are on it too where FAKE_NVML_OWN is set: the caller, and
// so each process of assay that asks.
static int next_process(const char** at, unsigned long numbers[3]) {
  for (int i = 0; i < 3; ++i) {
    char* end;
    numbers[i] = strtoul(*at, &end, 10);
    if (end == *at) return 0;
    *at = *end != 0 ? end + 1 : end;
  }
  return 1;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process* list) {
  const char* at = getenv("FAKE_NVML_PROCESSES");
  unsigned long numbers[3];
  unsigned found = 0;
  if (hot(device)) return 3;
  if (getenv("FAKE_NVML_OWN") != NULL) {
    const struct process own = {(unsigned)getpid(), 1000, 0, 0};
    list[found++] = own;
  }
  while (at != NULL && next_process(&at, numbers)) {
    const struct process one = {(unsigned)numbers[0], numbers[1], 0, 0};
    if (found == *count) return 7;
    list[found++] = one;
  }
  *count = found;
  return 0;
}
int nvmlSystemGetProcessName(unsigned pid, char* text, unsigned size) {
  strncpy(text, pid % 2 ? "/opt/bin/neighbour" : "holder", size);
  return 0;
}

struct use {
  unsigned pid;
  unsigned long long at_us;
  unsigned sm, memory, encoder, decoder;
};
// Each process that computes did so until a microsecond ago.
int nvmlDeviceGetProcessUtilization(void* device, struct use* list, unsigned* count,
                                    unsigned long long since_us) {
  const char* at = getenv("FAKE_NVML_PROCESSES");
  unsigned long numbers[3];
  unsigned found = 0;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const unsigned long long now_us =
      (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000 - 1;
  if (hot(device)) return 3;
  while (at != NULL && next_process(&at, numbers)) {
    const struct use one = {(unsigned)numbers[0], now_us, (unsigned)numbers[2], 0, 0, 0};
    if (numbers[2] == 0 || now_us <= since_us) continue;
    if (list != NULL) list[found] = one;
    ++found;
  }
  *count = found;
  return found == 0 ? 6 : list == NULL ? 7 : 0;
}
