// A libascendcl.so with one function of many.
extern "C" int aclInit(const char*) { return 0; }
