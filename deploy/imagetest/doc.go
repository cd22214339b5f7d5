// Package imagetest holds the tests that build the image and run it, alone and as compose.yaml does. It has no code of
// its own.
//
// They use the Docker engine that answers, with the official images. Where none does they start one, as root and on Linux,
// in namespaces of its own: whatever it does to networks and mounts goes with the tests. It can't pull images there, so
// stand-ins take the place of the official ones: the same software under the same names, from this machine. What is
// special about the official images is then not tested.
package imagetest
