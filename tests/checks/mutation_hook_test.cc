#include <cstdlib>

// scripts/mutate_rules.py sets the variable; every other run mutates nothing.
extern "C" const char* topotune_test_mutation();
extern "C" const char* topotune_test_mutation() { return std::getenv("TOPOTUNE_MUTATE"); }
