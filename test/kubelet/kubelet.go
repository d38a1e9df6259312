// SPDX-License-Identifier: Apache-2.0

// Package kubelet does for pods of the chart what nobody does in a lab: it makes the Pod of a workload on a node, and runs
// its container as it says.
package kubelet

import (
	"cmp"
	"context"
	_ "embed" // kubelet.sh
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

//go:embed kubelet.sh
var script string

// probeTime bounds one probe, which is given three seconds to answer.
const probeTime = 5 * time.Second

// Image is what a container has of its image.
type Image struct {
	// Program is the entry point, a program of this machine; with a Root, the path in it.
	Program string
	// Root is the unpacked image. Without one, the programs and libraries of this machine stand for its.
	Root string
}

// Kubelet runs pods of the namespace ovn-uplink, with tokens that are bound to them. What fails ends the test.
type Kubelet struct {
	T      *testing.T
	Lab    *lab.Lab
	Client kubernetes.Interface
	// Images are those of the product, by the last part of the repository.
	Images map[string]Image
}

// Running is a container that was started.
type Running struct {
	*lab.Process
	Node *lab.Node
	Pod  *corev1.Pod
	// inside is the command that runs another in a container like it.
	inside []string
}

// APIServerURL is the API server as the nodes see it, for the chart's value k8sAPIServer.
func APIServerURL(t *testing.T, l *lab.Lab) *url.URL {
	t.Helper()
	path, err := l.NodeKubeconfig(lab.AdminUser)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Run makes a pod from the template and starts it on a machine of the lab, which is a node, or a pod's own namespace.
// Directories of the node are those of the machine: where the agents look for Open vSwitch is where the lab has it.
func (k *Kubelet) Run(on *lab.Node, node string, template corev1.PodTemplateSpec, name string) *Running {
	k.T.Helper()
	pod := k.create(node, template, name)
	container := pod.Spec.Containers[0]
	image, ok := k.Images[Repository(container)]
	if !ok {
		k.T.Fatalf("pod %s has image %s, which is none of the product's", name, container.Image)
	}
	if len(container.Command) > 0 {
		k.T.Fatalf("pod %s has the command %q, and not the image's own", name, container.Command)
	}
	env := environment(k.T, pod, on.Address.String())
	inside, program := k.container(on, pod, image, env)
	argv := append(slices.Clone(inside), program)
	for _, arg := range container.Args {
		argv = append(argv, expand(arg, env))
	}
	p, err := on.Start(k.T.Context(), container.Name, argv, nil)
	if err != nil {
		k.T.Fatal(err)
	}
	return &Running{Process: p, Node: on, Pod: pod, inside: inside}
}

// Repository is the last part of the repository of a container's image.
func Repository(container corev1.Container) string {
	repository, _, _ := strings.Cut(filepath.Base(container.Image), ":")
	return repository
}

// container is the command that runs another inside the pod's container, and the path of the entry point there.
func (k *Kubelet) container(on *lab.Node, pod *corev1.Pod, image Image, env map[string]string) (inside []string, program string) {
	k.T.Helper()
	argv := append([]string{"unshare", "--mount", "--propagation", "private", "bash", k.write("kubelet.sh", script), k.T.TempDir()}, k.privileges(pod)...)
	argv = append(argv, k.write("environment", nulled(env)), image.Root)
	program = image.Program
	if image.Root == "" {
		program = "/agent"
		argv = append(argv, image.Program+":"+program+":ro")
	}
	argv = append(argv, k.mounts(on, pod)...)
	return append(argv, "--"), program
}

func (k *Kubelet) create(node string, template corev1.PodTemplateSpec, name string) *corev1.Pod {
	k.T.Helper()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Spec.NodeName = name, node
	pod, err := k.Client.CoreV1().Pods("ovn-uplink").Create(k.T.Context(), pod, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		k.T.Fatalf("make pod %s: %v", name, err)
	}
	return pod
}

// write puts a file where every user may read it.
func (k *Kubelet) write(name, content string) string {
	k.T.Helper()
	path := filepath.Join(k.T.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		k.T.Fatal(err)
	}
	return path
}

// privileges are user, group and capabilities of the pod's container, which has to have them said.
func (k *Kubelet) privileges(pod *corev1.Pod) []string {
	k.T.Helper()
	user, container := pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
	if user.RunAsUser == nil || user.RunAsGroup == nil || container.Capabilities == nil || fmt.Sprint(container.Capabilities.Drop) != "[ALL]" ||
		!*container.ReadOnlyRootFilesystem || *container.AllowPrivilegeEscalation || user.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		k.T.Fatalf("pod %s has more privileges than it should: %+v %+v", pod.Name, user, container)
	}
	var added []string
	for _, c := range container.Capabilities.Add {
		added = append(added, strings.ToLower(string(c)))
	}
	return []string{fmt.Sprint(*user.RunAsUser), fmt.Sprint(*user.RunAsGroup), strings.Join(added, ",")}
}

// mounts are the pod's volumes, as kubelet.sh takes them.
func (k *Kubelet) mounts(on *lab.Node, pod *corev1.Pod) []string {
	k.T.Helper()
	volumes := map[string]corev1.VolumeSource{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = v.VolumeSource
	}
	var mounts []string
	// The admission plugin that would put it into the pod does not run in a lab.
	if automount := pod.Spec.AutomountServiceAccountToken; automount != nil && *automount {
		mounts = append(mounts, k.account(pod)+":/var/run/secrets/kubernetes.io/serviceaccount:ro")
	}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		source := ""
		if v := volumes[m.Name]; v.HostPath != nil {
			source = k.hostPath(on, v.HostPath.Path)
		} else {
			k.T.Fatalf("pod %s has a volume %s that nobody expects: %+v", pod.Name, m.Name, v)
		}
		mounts = append(mounts, source+":"+m.MountPath+":"+mode)
	}
	return mounts
}

// hostPath is what a node's directory is in the lab.
func (k *Kubelet) hostPath(on *lab.Node, path string) string {
	k.T.Helper()
	switch path {
	case "/sys":
		tree, err := filepath.EvalSymlinks(on.SysfsRoot())
		if err != nil {
			return "/sys" // that of the network namespace, as ip-netns(8) mounts it
		}
		return readable(k.T, tree)
	case "/var/run/openvswitch":
		return on.OVS.RunDir()
	case "/var/lib/ovn-uplink":
		return k.T.TempDir()
	case "/proc/sys/net": // whose content is that of the network namespace of who reads it
		return path
	}
	k.T.Fatalf("the chart mounts %s of the node, which nobody expects", path)
	return ""
}

// readable lets every user read a simulated sysfs, as the real one does.
func readable(t *testing.T, tree string) string {
	t.Helper()
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// account writes what a pod has of its ServiceAccount: a token that is bound to the pod, and so names its node.
func (k *Kubelet) account(pod *corev1.Pod) string {
	k.T.Helper()
	token, err := k.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(k.T.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		k.T.Fatal(err)
	}
	dir := filepath.Dir(k.write("token", token.Status.Token))
	for name, content := range map[string]string{"namespace": pod.Namespace, "ca.crt": string(k.Lab.RESTConfig().CAData)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			k.T.Fatal(err)
		}
	}
	return dir
}

// environment is what a container's variables are.
func environment(t *testing.T, pod *corev1.Pod, address string) map[string]string {
	t.Helper()
	fields := map[string]string{"spec.nodeName": pod.Spec.NodeName, "metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "status.hostIP": address}
	env := map[string]string{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "GORACE": "halt_on_error=1"}
	for _, v := range pod.Spec.Containers[0].Env {
		env[v.Name] = v.Value
		if v.ValueFrom != nil {
			value, ok := fields[v.ValueFrom.FieldRef.FieldPath]
			if !ok {
				t.Fatalf("variable %s is from %s, which nobody expects", v.Name, v.ValueFrom.FieldRef.FieldPath)
			}
			env[v.Name] = value
		}
	}
	return env
}

var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// expand puts variables into an argument. One that does not exist stays as it is.
func expand(arg string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(arg, func(ref string) string {
		value, ok := env[ref[2:len(ref)-1]]
		if !ok {
			return ref
		}
		return value
	})
}

func nulled(env map[string]string) string {
	var b strings.Builder
	for name, value := range env {
		b.WriteString(name + "=" + value + "\x00")
	}
	return b.String()
}

// Probe asks a probe of the container, from the machine itself as a kubelet does.
func (r *Running) Probe(ctx context.Context, probe *corev1.Probe) (string, error) {
	get := probe.HTTPGet
	host := cmp.Or(get.Host, r.Node.Address.String())
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return r.Node.Exec(ctx, "curl", "-sS", "--fail-with-body", "-m", "3", "http://"+host+":"+get.Port.String()+get.Path)
}

// Inside runs a command in a container like the one that runs.
func (r *Running) Inside(ctx context.Context, argv ...string) (string, error) {
	return r.Node.Exec(ctx, append(slices.Clone(r.inside), argv...)...)
}
