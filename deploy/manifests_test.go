package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"

	"outboxrelay/internal/settings"
)

// object makes an empty object of a manifest's kind.
func object(kind metav1.TypeMeta) (any, error) {
	known := map[metav1.TypeMeta]any{
		{APIVersion: "v1", Kind: "ConfigMap"}:                        &corev1.ConfigMap{},
		{APIVersion: "v1", Kind: "Secret"}:                           &corev1.Secret{},
		{APIVersion: "apps/v1", Kind: "Deployment"}:                  &appsv1.Deployment{},
		{APIVersion: "apps/v1", Kind: "StatefulSet"}:                 &appsv1.StatefulSet{},
		{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:       &policyv1.PodDisruptionBudget{},
		{APIVersion: "monitoring.coreos.com/v1", Kind: "PodMonitor"}: &monitoringv1.PodMonitor{},
	}
	o, ok := known[kind]
	if !ok {
		return nil, fmt.Errorf("no schema for %s %s: add it to this test", kind.APIVersion, kind.Kind)
	}
	return o, nil
}

// manifests are all objects, by file. Fields that the API doesn't know, or that stand twice, are errors.
func manifests(t *testing.T) map[string][]any {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	all := map[string][]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text))); ; {
			document := make([]byte, len(text))
			n, err := documents.Read(document)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all[filepath.Base(file)] = append(all[filepath.Base(file)], decode(t, file, document[:n]))
		}
	}
	return all
}

func decode(t *testing.T, file string, document []byte) any {
	t.Helper()
	var kind metav1.TypeMeta
	if err := strict.Unmarshal(document, &kind); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	o, err := object(kind)
	if err == nil {
		err = strict.UnmarshalStrict(document, o)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return o
}

// find is the only object of a type in a file.
func find[T any](t *testing.T, objects []any) (found T) {
	t.Helper()
	n := 0
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			found, n = typed, n+1
		}
	}
	if n != 1 {
		t.Fatalf("%d of %T, want one", n, found)
	}
	return found
}

// pods are the templates of both ways to run, with the name of a pod.
func pods(t *testing.T) map[string]corev1.PodSpec {
	all := manifests(t)
	return map[string]corev1.PodSpec{
		"relay-7d4b9c6f5-x2kvq": find[*appsv1.Deployment](t, all["relay.yaml"]).Spec.Template.Spec,
		"relay-1":               find[*appsv1.StatefulSet](t, all["exactly-once.yaml"]).Spec.Template.Spec,
	}
}

// The environment that Kubernetes would give a pod is a configuration that loads, with files that are mounted.
func TestManifestsConfigureTheRelay(t *testing.T) {
	relay := manifests(t)["relay.yaml"]
	for hostname, pod := range pods(t) {
		t.Run(hostname, func(t *testing.T) {
			container := pod.Containers[0]
			var environ []string
			for _, from := range container.EnvFrom {
				environ = append(environ, variables(configMap(t, relay, from.ConfigMapRef.Name).Data)...)
			}
			for _, v := range container.Env {
				environ = append(environ, v.Name+"="+v.Value)
			}
			read := func(path string) ([]byte, error) { return mounted(t, relay, pod, path) }
			s, err := settings.Load(environ, read, hostname)
			if err != nil {
				t.Fatal(err)
			}
			if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= s.ShutdownGrace {
				t.Errorf("the pod has %s to end, and the relay takes %s", grace, s.ShutdownGrace)
			}
			for _, path := range []string{s.Kafka.TLS.CAFile, s.TenantsFile} {
				if _, err := read(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func variables(data map[string]string) (environ []string) {
	for name, value := range data {
		environ = append(environ, name+"="+value)
	}
	return environ
}

func configMap(t *testing.T, objects []any, name string) *corev1.ConfigMap {
	t.Helper()
	for _, o := range objects {
		if c, ok := o.(*corev1.ConfigMap); ok && c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no ConfigMap %s", name)
	return nil
}

// mounted reads a file as a container would; what is to be filled in counts as filled in.
func mounted(t *testing.T, objects []any, pod corev1.PodSpec, path string) ([]byte, error) {
	t.Helper()
	for _, mount := range pod.Containers[0].VolumeMounts {
		key, inside := strings.CutPrefix(path, mount.MountPath+"/")
		for _, volume := range pod.Volumes {
			if !inside || volume.Name != mount.Name {
				continue
			}
			var files map[string]string
			if volume.Secret != nil {
				files = find[*corev1.Secret](t, objects).StringData
			} else {
				files = configMap(t, objects, volume.ConfigMap.Name).Data
			}
			if content, ok := files[key]; ok {
				return []byte(content + "x"), nil
			}
		}
	}
	return nil, fmt.Errorf("nothing is mounted at %s", path)
}

func TestPodsAreConfined(t *testing.T) {
	for hostname, pod := range pods(t) {
		c := pod.Containers[0]
		switch s := c.SecurityContext; {
		case !*pod.SecurityContext.RunAsNonRoot, *pod.SecurityContext.RunAsUser == 0,
			pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault,
			*pod.AutomountServiceAccountToken, *pod.EnableServiceLinks,
			*s.AllowPrivilegeEscalation, !*s.ReadOnlyRootFilesystem,
			!reflect.DeepEqual(s.Capabilities.Drop, []corev1.Capability{"ALL"}):
			t.Errorf("%s is less confined than the restricted standard asks: %+v %+v", hostname, pod.SecurityContext, s)
		}
		if c.LivenessProbe.HTTPGet.Path != "/livez" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
			t.Errorf("%s: probes %+v, %+v", hostname, c.LivenessProbe, c.ReadinessProbe)
		}
		if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: no memory request or limit", hostname)
		}
	}
}

// Both ways to run differ in the promise alone, and everything that selects pods selects these.
func TestManifestsAgree(t *testing.T) {
	all := manifests(t)
	deployment := find[*appsv1.Deployment](t, all["relay.yaml"])
	set := find[*appsv1.StatefulSet](t, all["exactly-once.yaml"])
	once := set.Spec.Template.DeepCopy()
	once.Spec.Containers[0].Env = nil
	if !reflect.DeepEqual(*once, deployment.Spec.Template) {
		t.Error("the StatefulSet's pods differ from the Deployment's in more than their variables")
	}
	monitor := find[*monitoringv1.PodMonitor](t, all["podmonitor.yaml"])
	labels := deployment.Spec.Template.Labels
	for what, selector := range map[string]metav1.LabelSelector{
		"Deployment": *deployment.Spec.Selector, "StatefulSet": *set.Spec.Selector, "PodMonitor": monitor.Spec.Selector,
		"PodDisruptionBudget": *find[*policyv1.PodDisruptionBudget](t, all["relay.yaml"]).Spec.Selector,
	} {
		if !reflect.DeepEqual(selector.MatchLabels, labels) {
			t.Errorf("the %s selects %v, pods have %v", what, selector.MatchLabels, labels)
		}
	}
	if port := *monitor.Spec.PodMetricsEndpoints[0].Port; port != deployment.Spec.Template.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the PodMonitor asks port %s", port)
	}
}
