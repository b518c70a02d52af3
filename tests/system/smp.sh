# shellcheck shell=sh
# Guests with more vCPUs than the host has CPUs.

check_vcpus 4 8
