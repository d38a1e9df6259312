// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/lock"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source/sourcetest"
	"github.com/ovn-uplink/ovn-uplink/test/kubelet"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// fromSource bounds one step on the building machine, which compiles for two architectures.
const fromSource = 15 * time.Minute

// delivery is a site that follows docs/nvke.md: a checkout to build in, a cluster, and its control-plane node, which is a
// system of its own in the network namespace of a node of the lab.
type delivery struct {
	t        *testing.T
	checkout *sourcetest.Repository
	control  *root
	lab      *lab.Lab
	client   kubernetes.Interface
	regular  *lab.Regular
	pair     *lab.Pair
	env      []string // what the page's variables are here, and where kubectl finds the cluster
	locks    lock.Set
	running  []*kubelet.Running
}

// TestDocsNVKE does what docs/nvke.md says, with the commands that stand there, from a clean checkout to agents that run and
// an Uplink that is resolved, and back. The agents are those in the images that the package imported into containerd, and
// are started as the pods say that the API server has.
func TestDocsNVKE(t *testing.T) {
	t.Parallel()
	notShort(t)
	page := steps(t, filepath.Join(repository, "docs/nvke.md"))
	if len(page) == 0 || page[0].where != "site" {
		t.Fatal("the page does not begin with the site's variables")
	}
	d := newDelivery(t, page[0].script)
	checks := map[string]func(out string){
		"lock":      func(string) { d.readLocks() },
		"release":   d.released,
		"install":   d.installed,
		"push":      d.pushed,
		"pull":      func(string) { d.pulled() },
		"render":    d.rendered,
		"deploy":    func(string) { d.startAgents() },
		"uplink":    d.resolved,
		"versions":  d.versions,
		"uninstall": func(string) { d.uninstalled() },
		"purge":     func(string) { d.purged() },
	}
	for _, s := range page[1:] {
		began := time.Now()
		out, err := d.do(s)
		if err != nil {
			t.Fatalf("step %s: %v: %s", s.name, err, out)
		}
		t.Logf("%s, %.1f s:\n%s%s", s.name, time.Since(began).Seconds(), s.script, out)
		if check := checks[s.name]; check != nil {
			check(out)
		}
		delete(checks, s.name)
	}
	if len(checks) > 0 {
		t.Errorf("the page has no steps %v", slices.Sorted(maps.Keys(checks)))
	}
}

func newDelivery(t *testing.T, site string) *delivery {
	t.Helper()
	d := &delivery{t: t, lab: lab.ForTest(t, lab.Options{})}
	ctx := t.Context()
	var err error
	d.client, err = d.lab.Client()
	must(t, err)
	must(t, d.lab.ApplyFile(ctx, filepath.Join(repository, "deploy/host/ovn-kubernetes-crds")))
	d.regular, err = d.lab.RegularNode(ctx, "worker-a", lab.RegularSpec{})
	must(t, err)
	d.pair, err = d.lab.Pair(ctx, "worker-b", lab.PairSpec{})
	must(t, err)
	must(t, d.lab.CreateNode(ctx, "worker-a", map[string]string{"example.com/tenant-blue-uplink": "true"}))
	must(t, d.lab.CreateNode(ctx, "worker-b", nil))
	_, err = d.regular.StartOVN(ctx, lab.OVNSpec{})
	must(t, err)

	d.control = bootRoot(t, surroundings{netns: d.regular.NetNS})
	d.control.containerd()
	for name, find := range map[string]func(context.Context, func(string, ...any)) (string, error){"kubectl": lab.KubectlBinary, "helm": lab.HelmBinary} {
		path, err := find(ctx, t.Logf)
		must(t, err)
		command(t, "cp", path, d.control.seen("/usr/local/bin/"+name))
	}
	kubeconfig, err := d.lab.NodeKubeconfig(lab.AdminUser)
	must(t, err)
	raw, err := os.ReadFile(kubeconfig)
	must(t, err)
	d.control.write("/etc/kubernetes/admin.conf", "600", string(raw))

	d.checkout = sourcetest.Head(t, repository).Clone(filepath.Join(t.TempDir(), "ovn-uplink"))
	version := strings.TrimSpace(d.checkout.Git("show", "HEAD:VERSION"))
	host := d.registry()
	values := map[string]string{
		"VERSION": version, "APT_KEY": signer, "NODE_IMAGE": d.control.seen("/"),
		"REGISTRY": host, "REGISTRY_URL": "http://" + host, "REGISTRY_LOGIN": login,
		"API_SERVER": kubelet.APIServerURL(t, d.lab).String(), "POD_NETWORK": "10.244.0.0/16/24", "SERVICE_NETWORK": "10.96.0.0/16",
	}
	if has, wants := slices.Sorted(maps.Keys(values)), variables(site); !slices.Equal(has, wants) {
		t.Fatalf("the page's variables are %v, the test has %v", wants, has)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		d.env = append(d.env, name+"="+values[name])
	}
	d.env = append(d.env, newSigner(t).env()...)
	// What docker login writes.
	docker := t.TempDir()
	must(t, os.WriteFile(filepath.Join(docker, "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`,
		host, base64.StdEncoding.EncodeToString([]byte(login))), 0o600))
	d.env = append(d.env, "DOCKER_CONFIG="+docker)
	return d
}

// seen is the path by which this machine sees a file of the root.
func (r *root) seen(path string) string { return fmt.Sprintf("/proc/%d/root%s", r.pid, path) }

// login is what the site's registry wants, name and password.
const login = "node:secret"

// registry serves a private one without TLS at an address of this machine's loopback and at the same of the control-plane node's.
func (d *delivery) registry() string {
	d.t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	private := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user+":"+password != login {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: private, ReadHeaderTimeout: time.Minute}
	here, err := net.Listen("tcp", "127.0.0.1:0")
	must(d.t, err)
	var there net.Listener
	must(d.t, d.regular.Do(func() (err error) {
		there, err = net.Listen("tcp", here.Addr().String())
		return err
	}))
	done := make(chan error)
	for _, listener := range []net.Listener{here, there} {
		go func() { done <- server.Serve(listener) }()
	}
	d.t.Cleanup(func() {
		_ = server.Close()
		for range 2 {
			if err := <-done; !errors.Is(err, http.ErrServerClosed) {
				d.t.Error(err)
			}
		}
	})
	return here.Addr().String()
}

// do runs a step where the page says.
func (d *delivery) do(s step) (string, error) {
	shell := []string{"bash", "-euo", "pipefail", "-c", s.script}
	switch s.where {
	case "build":
		ctx, cancel := context.WithTimeout(d.t.Context(), fromSource)
		defer cancel()
		cmd := exec.CommandContext(ctx, shell[0], shell[1:]...)
		cmd.Dir = d.checkout.Root
		// What runs the tests has settings for make and Go that somebody at a shell has not.
		environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
			name, _, _ := strings.Cut(variable, "=")
			return slices.Contains([]string{"CGO_ENABLED", "GOFLAGS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"}, name)
		})
		// A registry on the loopback has no TLS.
		cmd.Env = append(append(environment, d.env...), "INSECURE=1", "GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com",
			"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
		out, err := cmd.CombinedOutput()
		return string(out), err
	case "node":
		return d.control.run(append(append([]string{"env", "HOME=/root", "KUBECONFIG=/etc/kubernetes/admin.conf"}, d.env...), shell...)...)
	}
	return "", fmt.Errorf("there is no machine %s", s.where)
}

// variable is what one of the page's variables is.
func (d *delivery) variable(name string) string {
	d.t.Helper()
	for _, assignment := range d.env {
		if value, ok := strings.CutPrefix(assignment, name+"="); ok {
			return value
		}
	}
	d.t.Fatalf("no variable %s", name)
	return ""
}

func (d *delivery) readLocks() {
	d.t.Helper()
	var err error
	d.locks, err = lock.ReadSet(source.Checkout{Root: d.checkout.Root}, d.variable("VERSION"))
	must(d.t, err)
}

// tag is that of the images.
func (d *delivery) tag() string { return d.locks[0].Commit[:12] }

// image is the reference of an agent's image, without a registry.
func (d *delivery) image(agent string) string { return "nvke/ovn-uplink-" + agent + ":" + d.tag() }

var bothAgents = []string{"host-agent", "dpu-agent"}

// expect checks that a text has all these.
func (d *delivery) expect(text string, wants ...string) {
	d.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			d.t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func (d *delivery) released(out string) {
	d.expect(out, "is what is locked", "packages, signed by "+signer, "package nvke-cni-ovn-uplink-charts-"+d.variable("VERSION"))
}

func (d *delivery) installed(out string) {
	for _, agent := range bothAgents {
		d.expect(out, "ovn-uplink-images: docker.io/"+d.image(agent)+" is in containerd (sha256:")
	}
}

// pushed checks that what the registry got has the digests that are locked.
func (d *delivery) pushed(out string) {
	for _, agent := range bothAgents {
		d.expect(out, "pushed "+d.variable("REGISTRY")+"/"+d.image(agent)+"@"+d.locked("index", agent, "amd64"))
	}
}

// pulled checks that containerd got the image of each platform.
func (d *delivery) pulled() {
	d.t.Helper()
	content := d.control.must("ctr", "-n", "k8s.io", "content", "ls", "--quiet")
	for _, agent := range bothAgents {
		for _, arch := range []string{"amd64", "arm64"} {
			d.expect(content, d.locked("image", agent, arch))
		}
	}
}

// locked is a digest in the locks.
func (d *delivery) locked(kind, agent, arch string) string {
	d.t.Helper()
	raw, err := os.ReadFile(lock.File(source.Checkout{Root: d.checkout.Root}, arch, d.variable("VERSION")))
	must(d.t, err)
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == kind && f[1] == "nvke/ovn-uplink-"+agent {
			return f[2]
		}
	}
	d.t.Fatalf("the lock for %s has no %s of %s:\n%s", arch, kind, agent, raw)
	return ""
}

func (d *delivery) rendered(out string) {
	d.t.Helper()
	want := []string{}
	for _, agent := range []string{"dpu-agent", "host-agent"} {
		want = append(want, "image:", fmt.Sprintf("%q", d.variable("REGISTRY")+"/"+d.image(agent)))
	}
	if got := strings.Fields(out); !slices.Equal(got, want) {
		d.t.Errorf("rendered is %v, want %v", got, want)
	}
}

// startAgents starts what the installed chart has the kubelets start.
func (d *delivery) startAgents() {
	d.t.Helper()
	ctx := d.t.Context()
	must(d.t, manifests.Await(ctx, d.lab))
	images := map[string]kubelet.Image{}
	for _, agent := range bothAgents {
		d.control.must("sh", "-euc", `mkdir -p "/mnt/$1" && ctr -n k8s.io images mount "$2" "/mnt/$1" && cp -a "/mnt/$1" /srv/ && ctr -n k8s.io images unmount --rm "/mnt/$1"`,
			"sh", agent, "docker.io/"+d.image(agent))
		images["ovn-uplink-"+agent] = kubelet.Image{Root: filepath.Join(d.control.share, agent), Program: "/usr/bin/" + agent}
	}
	k := &kubelet.Kubelet{T: d.t, Lab: d.lab, Client: d.client, Images: images}
	apps := d.client.AppsV1()
	daemon := func(name string) corev1.PodTemplateSpec {
		set, err := apps.DaemonSets(manifests.Namespace).Get(ctx, name, metav1.GetOptions{})
		must(d.t, err)
		return set.Spec.Template
	}
	role, err := apps.Deployments(manifests.Namespace).Get(ctx, "ovn-uplink-cluster", metav1.GetOptions{})
	must(d.t, err)
	somewhere, err := d.lab.AddNode(ctx, "pod-1")
	must(d.t, err)
	d.running = []*kubelet.Running{
		k.Run(d.regular.Node, "worker-a", daemon("ovn-uplink-node"), "ovn-uplink-node-a"),
		k.Run(d.pair.Host, "worker-b", daemon("ovn-uplink-host"), "ovn-uplink-host-b"),
		k.Run(somewhere, "worker-a", role.Spec.Template, "ovn-uplink-cluster-a"),
	}
}

// resolved checks that the Uplink is ready by the agents that run, all of which are.
func (d *delivery) resolved(out string) {
	d.t.Helper()
	d.expect(out, "uplink.k8s.ovn.org/tenant-blue condition met", "tenant-blue.worker-a")
	for _, r := range d.running {
		must(d.t, lab.Eventually(d.t.Context(), startTime, func(ctx context.Context) error {
			if out, err := r.Probe(ctx, r.Pod.Spec.Containers[0].ReadinessProbe); err != nil {
				return fmt.Errorf("%s: %w: %s", r.Name, err, out)
			}
			return nil
		}))
		d.expect(r.Log(1<<20), d.tag())
	}
}

func (d *delivery) versions(out string) {
	v := d.variable("VERSION")
	d.expect(out, "nvke-cni-ovn-uplink-charts-"+v+" "+v+"+git", "nvke-cni-ovn-uplink-images-"+v+" "+v+"+git",
		`tag: "`+d.tag()+`"`, d.image("host-agent"), d.image("dpu-agent"))
}

func (d *delivery) uninstalled() {
	d.t.Helper()
	list, err := d.client.AppsV1().DaemonSets(metav1.NamespaceAll).List(d.t.Context(), metav1.ListOptions{})
	must(d.t, err)
	if len(list.Items) > 0 {
		d.t.Errorf("%d DaemonSets are left", len(list.Items))
	}
}

func (d *delivery) purged() {
	d.t.Helper()
	for _, name := range []string{"/etc/dgx", "/usr/share/ovn-uplink", "/var/lib/ovn-uplink-images"} {
		if _, err := d.control.run("test", "!", "-e", name); err != nil {
			d.t.Errorf("%s is left", name)
		}
	}
	if got := d.control.stored(); strings.Contains(got, "docker.io/nvke/ovn-uplink") {
		d.t.Errorf("containerd still has\n%s", got)
	}
}
