/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb agent: this program at the other end of a connection, of plumb run --hosts and --against and
 * of plumb doctor --hosts. It obeys orders and answers them: JSON objects, one a line, the answers on
 * standard output. Both sides are of one protocol; another one is refused.
 *
 * With one order, as its word (ORDER has "protocol" and "job"), it obeys that and ends:
 *
 *   {"ask": "check", "arguments": [PROGRAM ...]}
 *     {"state": "begin", "name": as the host calls itself, "clock_s"}
 *     {"state": "end", "programs": [{"status": 0 or -errno, "version": or the reason}],
 *      "networks": [{"name", "speed_mbps": or null, "addresses": []}]}
 *   {"ask": "start", "program", "arguments", "host", "first", "n", "group", "secret", "watch"}: n
 *   processes, of a group the ranks from `first` on, or, in a job, the rank that the launcher says
 *     {"state": "begin", "name", "clock_s", "version", "rank"}, or
 *     {"state": "missing", "name", "why"}: the program does not start there
 *     {"state": "end", "status", "rows", "samples"}: of rank 0 alone
 *
 * Standard error is the processes'; of a group "plumb-rank R " stands before each line.
 *
 *   secret  the first line of standard input, which each process gets on its own: so it is on no
 *           command line and in no file
 *   end     with "watch" the end of standard input is that of the connection: then the processes are
 *           ended. Questions are short, and some connections have no standard input. A job
 *           (of mpirun and srun) has none to give: there it is the end of the process that started
 *           the agent. If the agent is killed, they die with it
 *   status  of the first process that ended badly; in a job, and with rows, 0. A launcher ends all
 *           ranks when one ends badly, so one that was killed stays a while, and rank 0 can report
 *           which one it was
 *
 * Without a word it reads orders from standard input: harness/against/against.h.
 */
#ifndef PLUMB_HARNESS_HOSTS_AGENT_H
#define PLUMB_HARNESS_HOSTS_AGENT_H

#define AGENT_PROTOCOL 3

/* Obeys one order. Returns the exit status. */
int host_agent(const char *order);

#endif
