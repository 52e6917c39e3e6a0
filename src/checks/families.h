#pragma once

#include <span>

#include "checks/rule.h"

// Each family's file exports its rules; rules.cc joins them.
namespace topotune::checks {

std::span<const Rule> topo_rules();
std::span<const Rule> matrix_rules();
std::span<const Rule> numa_rules();
std::span<const Rule> pcie_rules();
std::span<const Rule> acs_rules();
std::span<const Rule> nvl_rules();
std::span<const Rule> gpu_rules();
std::span<const Rule> gdr_rules();
std::span<const Rule> rdma_rules();
std::span<const Rule> gid_rules();
std::span<const Rule> qos_rules();
std::span<const Rule> ctr_rules();
std::span<const Rule> kern_rules();
std::span<const Rule> cont_rules();
std::span<const Rule> irq_rules();
std::span<const Rule> ver_rules();
std::span<const Rule> job_rules();  // judged only where the job's variables are known

}  // namespace topotune::checks
