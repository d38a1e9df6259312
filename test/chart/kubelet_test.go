// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// kubelet does for pods of the chart what nobody does in a lab: it makes the Pod of a workload on a node, and runs its
// container as it says, with a token that is bound to the pod.
type kubelet struct {
	t      *testing.T
	lab    *lab.Lab
	client kubernetes.Interface
	// programs are what the images' entry points are: by the last part of the repository.
	programs map[string]string
}

// running is a container that was started.
type running struct {
	*lab.Process
	node *lab.Node
	pod  *corev1.Pod
}

// apiServerURL is the API server as the nodes see it, for the chart's value k8sAPIServer.
func apiServerURL(t *testing.T, l *lab.Lab) *url.URL {
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

// run makes a pod from the template and starts it on a machine of the lab, which is a node, or a pod's own namespace.
// Directories of the node are those of the machine: where the agents look for Open vSwitch is where the lab has it.
func (k *kubelet) run(on *lab.Node, node string, template corev1.PodTemplateSpec, name string) *running {
	k.t.Helper()
	pod := k.create(node, template, name)
	container := pod.Spec.Containers[0]
	repository, _, _ := strings.Cut(filepath.Base(container.Image), ":")
	program, ok := k.programs[repository]
	if !ok {
		k.t.Fatalf("pod %s has image %s, which is none of the product's", name, container.Image)
	}
	if len(container.Command) > 0 {
		k.t.Fatalf("pod %s has the command %q, and not the image's own", name, container.Command)
	}
	env := environment(k.t, pod, on.Address.String())
	argv := append(k.container(on, pod, program, env), "/agent")
	for _, arg := range container.Args {
		argv = append(argv, expand(arg, env))
	}
	p, err := on.Start(k.t.Context(), container.Name, argv, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	return &running{Process: p, node: on, pod: pod}
}

// container is the command that runs another inside the pod's container.
func (k *kubelet) container(on *lab.Node, pod *corev1.Pod, program string, env map[string]string) []string {
	k.t.Helper()
	argv := append([]string{"unshare", "--mount", "--propagation", "private", k.abs("kubelet.sh"), k.t.TempDir()}, k.privileges(pod)...)
	argv = append(argv, k.write("environment", nulled(env)))
	argv = append(argv, program+":/agent:ro")
	argv = append(argv, k.mounts(on, pod)...)
	return append(argv, "--")
}

func (k *kubelet) create(node string, template corev1.PodTemplateSpec, name string) *corev1.Pod {
	k.t.Helper()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Spec.NodeName = name, node
	pod, err := k.client.CoreV1().Pods("ovn-uplink").Create(k.t.Context(), pod, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		k.t.Fatalf("make pod %s: %v", name, err)
	}
	return pod
}

func (k *kubelet) abs(path string) string {
	k.t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		k.t.Fatal(err)
	}
	return abs
}

// write puts a file where every user may read it.
func (k *kubelet) write(name, content string) string {
	k.t.Helper()
	path := filepath.Join(k.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		k.t.Fatal(err)
	}
	return path
}

// privileges are user, group and capabilities of the pod's container, which has to have them said.
func (k *kubelet) privileges(pod *corev1.Pod) []string {
	k.t.Helper()
	user, container := pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
	if user.RunAsUser == nil || user.RunAsGroup == nil || container.Capabilities == nil || fmt.Sprint(container.Capabilities.Drop) != "[ALL]" ||
		!*container.ReadOnlyRootFilesystem || *container.AllowPrivilegeEscalation || user.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		k.t.Fatalf("pod %s has more privileges than it should: %+v %+v", pod.Name, user, container)
	}
	var added []string
	for _, c := range container.Capabilities.Add {
		added = append(added, strings.ToLower(string(c)))
	}
	return []string{fmt.Sprint(*user.RunAsUser), fmt.Sprint(*user.RunAsGroup), strings.Join(added, ",")}
}

// mounts are the pod's volumes, as kubelet.sh takes them.
func (k *kubelet) mounts(on *lab.Node, pod *corev1.Pod) []string {
	k.t.Helper()
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
			k.t.Fatalf("pod %s has a volume %s that nobody expects: %+v", pod.Name, m.Name, v)
		}
		mounts = append(mounts, source+":"+m.MountPath+":"+mode)
	}
	return mounts
}

// hostPath is what a node's directory is in the lab.
func (k *kubelet) hostPath(on *lab.Node, path string) string {
	k.t.Helper()
	switch path {
	case "/sys":
		tree, err := filepath.EvalSymlinks(on.SysfsRoot())
		if err != nil {
			return "/sys" // that of the network namespace, as ip-netns(8) mounts it
		}
		return readable(k.t, tree)
	case "/var/run/openvswitch":
		return on.OVS.RunDir()
	case "/var/lib/ovn-uplink":
		return k.t.TempDir()
	case "/proc/sys/net": // whose content is that of the network namespace of who reads it
		return path
	}
	k.t.Fatalf("the chart mounts %s of the node, which nobody expects", path)
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
func (k *kubelet) account(pod *corev1.Pod) string {
	k.t.Helper()
	token, err := k.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(k.t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	dir := filepath.Dir(k.write("token", token.Status.Token))
	for name, content := range map[string]string{"namespace": pod.Namespace, "ca.crt": string(k.lab.RESTConfig().CAData)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			k.t.Fatal(err)
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

// probe asks a probe of the container, from the machine itself as a kubelet does.
func (r *running) probe(probe *corev1.Probe) (string, error) {
	get := probe.HTTPGet
	host := cmp.Or(get.Host, r.node.Address.String())
	ctx, cancel := contextFor(5)
	defer cancel()
	return r.node.Exec(ctx, "curl", "-sS", "--fail-with-body", "-m", "3", "http://"+host+":"+get.Port.String()+get.Path)
}
