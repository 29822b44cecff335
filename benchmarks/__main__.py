"""`make bench`: run every benchmark, save results/*.json, and write README.md from them."""

from benchmarks import (
    answer,
    audit,
    batching,
    certificate,
    gateway_decisions,
    gateway_load,
    guarantee,
    kernels,
    lattice,
    learned,
    outsiders,
    quality,
    race,
    recordings,
    roofline,
    scale,
    start_up,
)
from benchmarks.record import write_readme

if __name__ == "__main__":
    for benchmark in (
        start_up,
        lattice,
        batching,
        quality,
        kernels,
        guarantee,
        certificate,
        answer,
        learned,
        recordings,
        audit,
        outsiders,
        race,
        roofline,
        scale,
        gateway_decisions,
        gateway_load,
    ):
        benchmark.main()
    write_readme()
