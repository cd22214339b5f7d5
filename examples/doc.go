// Package examples holds the tests of the examples in its folders. It has no code of its own.
package examples
