// Every header that is installed, in one source: none depends on one that stayed behind.
#include "all_headers.h"

int main() {}
