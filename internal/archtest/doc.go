// Package archtest holds the tests that keep the architecture: which package may
// import which, what must never reach the program, who may read the environment or
// write files, and that the tests which the documentation names are there.
// It has no code of its own.
package archtest
