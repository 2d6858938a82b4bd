# Makefile - builds, installs and tests wiscsort with PGXS.
#
#   make               build wiscsort.so for the server of PG_CONFIG
#   make install       install it there
#   make installcheck  pg_regress against the running server (PGHOST, PGPORT, ...)
#   make check         install what is missing, build, run every test on private servers
#   make check-core    PostgreSQL's own suites with every sort taken by WiscSort (test/core/run)
#   make check-matrix  all of this for PostgreSQL 15, 17 and 18 (test/matrix; for maintainers)
#   make mutants       does a test notice each of the one-line faults of test/mutants? (an hour)
#   make demo          the main job against core (ROWS=10000000)
#
# libhwy (vqsort), libaio, libpmem and ICU's headers are optional; `make libraries` says which
# were found.  libpmem is loaded when it is first needed (src/os/pmem.c).  libaio is
# looked for already, but nothing in this version calls it.

MODULE_big = wiscsort
EXTENSION = wiscsort
DATA = sql/wiscsort--0.1.sql
PGFILEDESC = "wiscsort - external sorts on keys and pointers"

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c src/exec/below/*.c)))

REGRESS = setup types multi plans cursors executor joins merge threads heap keys explain errors corner edges
REGRESS_OPTS = --inputdir=test --outputdir=test/out --encoding=UTF8 --no-locale
UNIT_TESTS = test/unit/test_memory test/unit/test_losertree test/unit/test_key test/unit/test_runfile
EXTRA_CLEAN = $(UNIT_TESTS) bench/gensort test/out

PG_CONFIG ?= pg_config
PKG_CONFIG ?= pkg-config

# The targets that must work before any server-dev package is there.
ifneq ($(filter check check-core check-matrix demo mutants,$(MAKECMDGOALS)),)

.PHONY: check check-core demo
check:
	.ci/deps
	$(MAKE) all
	.ci/install $(PG_CONFIG)
	test/run --pg-config $(PG_CONFIG) $(CHECK_OPTS)

check-core:
	.ci/deps
	$(MAKE) all
	.ci/install $(PG_CONFIG)
	test/core/run --pg-config $(PG_CONFIG) $(CHECK_OPTS)

.PHONY: check-matrix mutants
check-matrix:
	test/matrix $(VERSIONS)

mutants:
	test/mutants/run --pg-config $(PG_CONFIG) $(CHECK_OPTS)

demo:
	.ci/deps
	$(MAKE) all
	$(MAKE) bench/gensort
	.ci/install $(PG_CONFIG)
	ROWS=$(or $(ROWS),10000000) bench/demo --pg-config $(PG_CONFIG)

else

# Optional libraries.  Debian's libaio has no .pc file, hence the second probe.
found = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo yes)
header = $(shell printf '\043include <$(1)>\n' | $(or $(CC),cc) -E -x c - >/dev/null 2>&1 && echo yes)
HAVE_CXX := $(shell $(CXX) --version >/dev/null 2>&1 && echo yes)
WITH_LIBHWY ?= $(if $(HAVE_CXX),$(call found,libhwy libhwy-contrib))
WITH_LIBAIO ?= $(or $(call found,libaio),$(call header,libaio.h))
WITH_LIBPMEM ?= $(call found,libpmem)
WITH_ICU ?= $(or $(call found,icu-i18n),$(call header,unicode/ucol.h))

ifeq ($(WITH_LIBHWY),yes)
OBJS += src/index/vqsort.o
HWY_CXXFLAGS := $(shell $(PKG_CONFIG) --cflags libhwy libhwy-contrib)
SHLIB_LINK += $(shell $(PKG_CONFIG) --libs libhwy-contrib libhwy)
PG_CPPFLAGS += -DHAVE_LIBHWY
endif
ifeq ($(WITH_LIBAIO),yes)
PG_CPPFLAGS += -DHAVE_LIBAIO
endif
ifeq ($(WITH_LIBPMEM),yes)
PG_CPPFLAGS += -DHAVE_LIBPMEM
endif
ifeq ($(WITH_ICU),yes)
PG_CPPFLAGS += -DHAVE_ICU $(shell $(PKG_CONFIG) --cflags icu-i18n 2>/dev/null)
endif
PG_CPPFLAGS += -I$(CURDIR)/src
SHLIB_LINK += -pthread
PG_CFLAGS += -pthread -Wall -Wextra -Wno-unused-parameter -MMD -MP $(WERROR) $(SANITIZE)

# JIT cannot inline anything useful from here: no bitcode, no need for clang.
override with_llvm := no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Objects know their headers.
-include $(OBJS:.o=.d)
EXTRA_CLEAN += $(OBJS:.o=.d)

src/index/vqsort.o: src/index/vqsort.cc
	$(CXX) -O2 -g -fPIC -fno-exceptions -fno-rtti -Wall -Wextra $(WERROR) $(SANITIZE) $(HWY_CXXFLAGS) -c -o $@ $<

bench/gensort: bench/gensort.c
	$(CC) -O2 -Wall -Wextra -Werror -o $@ $<

# The pure parts, compiled without a server behind them.
UNIT_CFLAGS = -O1 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -Wno-format-truncation -I$(CURDIR)/src -I$(includedir_server) $(CPPFLAGS) $(SANITIZE)
.PHONY: unit libraries
unit: $(UNIT_TESTS)
test/unit/%: test/unit/%.c test/unit/unit.h $(wildcard src/*/*.h src/*.h) src/merge/losertree.c src/key/normalize.c src/run/runblock.h
	$(CC) $(UNIT_CFLAGS) -o $@ $< -lm

libraries:
	@echo "libhwy:  $(if $(filter yes,$(WITH_LIBHWY)),found (sort kernel vqsort),missing: the sort kernel is PostgreSQL's sort_template)"
	@echo "libaio:  $(if $(filter yes,$(WITH_LIBAIO)),found,missing) (not used by this version)"
	@echo "libpmem: $(if $(filter yes,$(WITH_LIBPMEM)),found,missing: tables on persistent memory are mapped as any other)"
	@echo "ICU:     $(if $(filter yes,$(WITH_ICU)),found,missing: its headers. Text under its collations is sorted by keys that PostgreSQL makes)"
all: libraries

endif
