// Package docstest runs the commands and samples of pages for operators, in the order in which they stand there, on servers of
// its own. It has no code of its own.
//
// Blocks of sh are run by a shell with the relay and Kafka's commands on its path, blocks of sql by a superuser; a block of env is
// the environment of what follows, and one of text is what the command before it printed, with "..." for what differs.
package docstest
