// Package deploy holds the tests of the manifests and of compose.yaml: that Kubernetes knows each field, and that the relay
// would start. It has no code of its own. It is a module of its own, so that Kubernetes' types are no dependency of the relay.
package deploy
