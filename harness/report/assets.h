/* SPDX-License-Identifier: Apache-2.0 */
/* The files that are part of the program: style.css and report.js, each ending with a NUL. */
#ifndef PLUMB_REPORT_ASSETS_H
#define PLUMB_REPORT_ASSETS_H

extern const char asset_style[];
extern const char asset_script[];

#endif
