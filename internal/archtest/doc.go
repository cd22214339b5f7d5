// Package archtest holds the tests that keep the architecture: which package may
// import which, what must never reach the program, and who may read the environment.
// It has no code of its own.
package archtest
