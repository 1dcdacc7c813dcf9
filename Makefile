# `make audit` and `make test` set everything up by themselves. The commands are in tools/dev, which needs no make.
.DEFAULT_GOAL := help
.PHONY: help venv audit test check test-long bench site lock

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

venv:  ## create .venv with everything installed
	@tools/dev venv

audit:  ## audit the shipped traces of a real cluster, on embedded Spark
	@tools/dev audit

check:  ## ruff, mypy, import contracts
	@tools/dev check

test:  ## check, then all tests but the long ones
	@tools/dev test

test-long:  ## the tests that take minutes
	@tools/dev test-long

bench:  ## audit speed and memory: local, Spark, interp (some minutes)
	@tools/dev bench

site:  ## the documents as a site with search, in build/site
	@tools/dev site

lock:  ## anew: tools/constraints.txt, the exact versions that all of these install
	@tools/dev lock
