// What tests ask of the stand-in, and tell it. Looked up with dlsym in the stand-in of libascendcl.so.
#pragma once

// X(name, type of the function)
#define STANDIN_CONTROL(X)                                                                 \
  X(standin_reset, void()) /* forgets calls, violations, settings */                       \
  X(standin_violations, int())                                                             \
  X(standin_violation, const char*(int))                                                   \
  X(standin_live_objects, int())                                                           \
  X(standin_live_list, const char*())                                                      \
  X(standin_forget_objects, void())    /* what is left now, on purpose */                  \
  X(standin_calls, int())              /* counted since the reset */                       \
  X(standin_call, const char*(int))    /* name of the n-th, from 1 */                      \
  X(standin_count, int(const char*))   /* calls of that function */                        \
  X(standin_fail_call, void(int, int)) /* the n-th fails, with that code */                \
  X(standin_most_queued, int())        /* launches on a stream that waits */               \
  X(standin_set_devices, void(int))                                                        \
  X(standin_set_soc, void(const char*, long long)) /* and its memory */                    \
  X(standin_set_repeatable, void(int))             /* 0: executors cannot be used again */ \
  X(standin_set_patience, void(int))               /* ms that ranks wait for each other */ \
  X(standin_set_free_memory, void(long long))      /* what can be allocated at once */     \
  X(standin_allocated, long long())                /* bytes, now */
