// SPDX-License-Identifier: Apache-2.0
/* Puts the parts together in a fixed order, so that the object's keys always stand alike. */
#include "harness/probe/facts.h"
#include "harness/probe/pci.h"
#include "harness/probe/probe.h"

#include <errno.h>
#include <string.h>

enum { SCHEMA = 2 };

/* Findings come last in the object but are added to all along, so they wait outside it. */
static void probe_all(struct probe *p)
{
    fact_set_number(p->machine, "probe_schema", SCHEMA);
    fact_set_text(p->machine, "source", p->tree.live ? "this machine" : "recorded tree");
    probe_host(p);
    p->pci_rc = pci_load(&p->tree, &p->pci);
    probe_virtualization(p);
    probe_cpu(p);
    probe_topology(p);
    probe_memory(p);
    probe_pci(p);
    probe_network(p);
    probe_rdma(p);
    probe_gpus(p);
    probe_proximity(p);
    probe_findings(p);
    json_object_set(p->machine, "findings", p->findings);
}

int probe_machine(const char *sysroot, json_t **machine)
{
    struct probe p = {.machine = json_object(), .findings = json_array()};
    int rc = tree_open(&p.tree, sysroot);

    *machine = NULL;
    if (!rc && !tree_exists(&p.tree, "sys") && !tree_exists(&p.tree, "proc"))
        rc = -ENODATA;
    if (!rc && (!p.machine || !p.findings))
        rc = -ENOMEM;
    if (!rc)
        probe_all(&p);
    tree_close(&p.tree);
    pci_free(p.pci);
    json_decref(p.findings);
    if (rc)
        json_decref(p.machine);
    else
        *machine = p.machine;
    return rc;
}
