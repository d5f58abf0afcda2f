/* SPDX-License-Identifier: Apache-2.0 */
/* The link that a limit is of: see forecast.h. */
#include <math.h>
#include <string.h>

#include "harness/forecast/forecast.h"

#define PAYLOAD_LEAST 0.93 /* of a link's rate that protocols leave: 0.941 to 0.993 */

/* Links of this rate would have the limit: so many of them. NaN where those of two rates would. */
static void try_link(struct part_law *law, double gbits)
{
    double times = ceil(law->limit * 8e-9 / gbits * 0.999);

    if (!(gbits > 0) || times > FORECAST_LINKS ||
        !(law->limit * 8e-9 >= PAYLOAD_LEAST * times * gbits))
        return;
    law->link_gbits = law->links > 0 && law->link_gbits != gbits ? NAN : gbits;
    law->links = times;
}

/* Rows have what the links of a node carry as payload; the system knows the rate of each link. */
void parts_find_link(const struct report *r, struct part_law *law)
{
    law->links = 0;
    for (size_t run = 0; law->limit > 0 && run < r->n_runs; run++) {
        FACT_EACH (fact_at(r->runs[run].meta, "limits"), limit) {
            const char *figure = strrchr(fact_name(limit, "key"), '.');

            if (figure && !strcmp(figure, ".gbits_per_s"))
                try_link(law, fact_number(limit, "value", 0));
        }
        FACT_EACH (fact_at(r->runs[run].meta, "hosts.list"), host)
            FACT_EACH (fact_at(host, "networks"), network)
                try_link(law, 1e-3 * fact_number(network, "speed_mbps", 0));
    }
}
