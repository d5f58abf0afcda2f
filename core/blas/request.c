/* SPDX-License-Identifier: Apache-2.0 */
/* From what is asked for to what can be done: see request.h. */
#include "core/blas/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/device/device.h"

int gemm_where_find(const char *device, const struct gemm_where **where, unsigned *index,
                    char *error, size_t len)
{
    struct place place;
    int err = place_parse(device, PLACE_WHOLE | PLACE_GPU, &place, error, len);

    for (const struct gemm_where *const *at = gemm_wheres; !err && *at; at++)
        if ((*at)->device == place.device) {
            *where = *at;
            *index = place.index;
            return 0;
        }
    if (!err)
        snprintf(error, len, "'%s' multiplies no matrices", device);
    return err ? err : -EINVAL;
}

const char *gemm_types_text(char *const *devices, size_t n, char *text, size_t len)
{
    bool leads = false;
    unsigned types = 0, index;
    char error[160];

    text[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gemm_where *where;
        if (gemm_where_find(devices[i], &where, &index, error, sizeof(error)))
            continue;
        types |= gemm_types_of(where);
        leads |= where->device->leads;
    }
    for (int t = 0; leads && t < GEMM_DTYPES; t++)
        if (types >> t & 1)
            snprintf(text + strlen(text), len - strlen(text), "%s%s", *text ? "," : "",
                     gemm_dtypes[t].name);
    return text;
}

static int no_library(struct point *pt, const struct gemm_where *where,
                      const struct gemm_library *asked, enum gemm_dtype dtype)
{
    const char *type = gemm_dtypes[dtype].name;
    const struct gemm_library *other = gemm_library_for(where, dtype);

    if (asked && asked->where != where)
        return point_reason(pt, -EOPNOTSUPP, "%s does not run on %s: take --library auto",
                            asked->name, where->name);
    if (asked && other)
        return point_reason(pt, -EOPNOTSUPP, "%s has no %s product: take --library %s", asked->name,
                            type, other->name);
    for (const struct gemm_where *const *at = gemm_wheres; *at; at++)
        if (gemm_library_for(*at, dtype))
            return point_reason(pt, -EOPNOTSUPP,
                                "no library for %s has %s products: take --device %s", where->name,
                                type, (*at)->device->name);
    return -EOPNOTSUPP;
}

int gemm_resolve(struct point *pt, const struct gemm_asked *asked, const struct gemm_where *where,
                 struct gemm_request *q)
{
    enum gemm_dtype dtype = (enum gemm_dtype)asked->dtype;

    q->library =
        asked->library ? gemm_libraries[asked->library - 1] : gemm_library_for(where, dtype);
    if (!q->library || q->library->where != where || !(q->library->dtypes >> dtype & 1))
        return no_library(pt, where, q->library, dtype);
    q->form = gemm_form_find(where->forms, dtype, (enum gemm_sums)asked->sums);
    if (!q->form)
        return point_reason(pt, -EOPNOTSUPP,
                            "%s products are not summed as '%s' on %s: take --accumulate default",
                            gemm_dtypes[dtype].name, gemm_sums_names[asked->sums], where->name);
    enum gemm_layout layout = asked->layout ? (enum gemm_layout)asked->layout : q->form->layout;
    if ((layout == GEMM_NT && !where->transposes) ||
        (layout == GEMM_NN && q->form->layout == GEMM_NT))
        return point_reason(pt, -EOPNOTSUPP, "%s products on %s take B as %s alone: --layout %s",
                            gemm_dtypes[dtype].name, where->name,
                            where->transposes ? "n x k" : "k x n", where->transposes ? "nt" : "nn");
    q->b_is_nk = layout == GEMM_NT;
    q->data = (enum gpu_data)asked->data;
    q->threads = (unsigned)asked->threads;
    q->file = asked->files[q->library->file];
    point_option(pt, "library", "%s", q->library->name);
    point_option(pt, "layout", "%s", gemm_layout_names[layout]);
    point_option(pt, "accumulate", "%s", q->form->accumulate);
    return 0;
}

int gemm_begin(const struct gemm_where *where, struct gemm_run *run, const struct gemm_shape *shape,
               bool brief)
{
    const struct gemm_form *form = run->request.form;

    if (form->k_max && shape->k > form->k_max)
        return point_reason(run->pt, -EOPNOTSUPP, "%s sums may overflow where k is over %llu",
                            gemm_dtypes[form->dtype].name, (unsigned long long)form->k_max);
    return where->begin(run, shape, brief);
}
