/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUMB_CORE_VERSION_H
#define PLUMB_CORE_VERSION_H

#define PLUMB_VERSION "0.1.0"

#endif
