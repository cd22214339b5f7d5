// Package examples holds the tests of the example consumers in its folders. It has no code of its own.
package examples
