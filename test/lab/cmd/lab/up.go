// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// The machines of the lab that up makes.
const (
	regularNode = "worker-a"
	hostNode    = "worker-b"
	cardNode    = "worker-b-dpu"
)

func upCommand(dir *string) *cobra.Command {
	var fresh bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the lab and leave it up",
		Long: `Starts the API server, a regular node, a host with a DPU, and the external
network, and leaves them up. A lab that is up already and complete is left as
it is; what a crashed one left behind is removed first.`,
		Example: "  lab up\n  lab up --fresh --dir /tmp/mylab",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begin, out := time.Now(), cmd.OutOrStdout()
			kubectl, err := lab.KubectlBinary(cmd.Context(), logger(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			if s, err := lab.ReadStatus(*dir); err == nil && !fresh && complete(s) {
				_, _ = fmt.Fprintf(out, "The lab in %s is up already; --fresh makes a new one.\n", s.Dir)
				return describe(out, s, kubectl)
			}
			if err := up(cmd.Context(), *dir, logger(cmd.ErrOrStderr())); err != nil {
				return err
			}
			s, err := lab.ReadStatus(*dir)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "The lab is up after %s, in %s.\n", time.Since(begin).Round(100*time.Millisecond), s.Dir)
			return describe(out, s, kubectl)
		},
	}
	cmd.Flags().BoolVar(&fresh, "fresh", false, "end a lab that is up and make a new one")
	return cmd
}

// up makes the lab; when that fails, nothing of it is left.
func up(ctx context.Context, dir string, log func(string, ...any)) error {
	l, err := lab.New(ctx, lab.Options{Dir: dir, Log: log})
	if err != nil {
		return err
	}
	if err := populate(ctx, l); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(err, l.Close(clean))
	}
	return nil
}

func populate(ctx context.Context, l *lab.Lab) error {
	if _, err := l.RegularNode(ctx, regularNode, lab.RegularSpec{}); err != nil {
		return err
	}
	if _, err := l.Pair(ctx, hostNode, lab.PairSpec{Card: cardNode}); err != nil {
		return err
	}
	for _, name := range []string{regularNode, hostNode} {
		if err := l.CreateNode(ctx, name, nil); err != nil {
			return err
		}
	}
	return nil
}

// complete says whether everything that up makes is there and alive.
func complete(s lab.Status) bool {
	need := map[string]bool{
		"api": true, "external": true, regularNode: true, hostNode: true, cardNode: true,
		"api.kube-apiserver": true, "api.etcd": true, "api.forward": true,
		regularNode + ".ovs-vswitchd": true, cardNode + ".ovs-vswitchd": true,
	}
	for _, ns := range s.Namespaces {
		delete(need, ns.Name)
	}
	for _, p := range s.Processes {
		delete(need, p.Name)
	}
	return len(need) == 0 && s.Healthy() == nil
}

func describe(out io.Writer, s lab.Status, kubectl string) error {
	var b strings.Builder
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	rows := [][3]string{
		{regularNode, "regular node", "bridge ovsbr1 with 172.28.0.2/16, uplink up0"},
		{hostNode, "host", "ens1f0 with 172.28.0.3/16, a function of the DPU"},
		{cardNode, "its DPU", "bridge br-ext: uplink p0, representor pf0hpf"},
		{"external", "outside", "gateway 172.28.0.1, and " + lab.InternetAddress.String() + " behind it"},
	}
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", r[0], r[1], r[2])
	}
	_ = w.Flush() // into a strings.Builder
	self := invocation(s.Dir)
	fmt.Fprintf(&b, `
  export KUBECONFIG=%s

Try:
  %s get nodes
  %s
  %s
End it:
  %s
`, s.Kubeconfig, kubectl,
		self("exec", hostNode+" -- ping -c1 "+lab.InternetAddress.String()),
		self("exec", cardNode+" -- ovs-vsctl show"),
		self("down", ""))
	_, err := io.WriteString(out, b.String())
	return err
}

// invocation returns how a person would type a command of this program for
// the lab in dir.
func invocation(dir string) func(command, rest string) string {
	self := os.Args[0]
	if strings.HasPrefix(filepath.Clean(self), filepath.Join(os.TempDir(), "go-build")) {
		self = "go run ./test/lab/cmd/lab" // where go run put it, it is gone by then
	}
	return func(command, rest string) string {
		line := self + " " + command
		if dir != lab.DefaultDir() {
			line += " --dir " + dir
		}
		return strings.TrimSpace(line + " " + rest)
	}
}

// logger prints steps that take a while.
func logger(w io.Writer) func(string, ...any) {
	return func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
}
