// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/spf13/cobra"
)

// serveCommand is what the demo starts on machines that are to answer. It is a process of its own because the demo
// ends and they stay.
func serveCommand() *cobra.Command {
	var at, name string
	cmd := &cobra.Command{
		Use:    "serve",
		Short:  "Answer HTTP requests with a name and the client's address",
		Hidden: true,
		Args:   agent.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			server := http.Server{
				Addr: at, ReadHeaderTimeout: 5 * time.Second,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = fmt.Fprintf(w, "%s: you are %s\n", name, r.RemoteAddr) // a failure shows at the client
				}),
			}
			return server.ListenAndServe()
		},
	}
	cmd.Flags().StringVar(&at, "at", ":80", "`address` to listen at")
	cmd.Flags().StringVar(&name, "name", "", "`name` to answer with")
	return cmd
}

// answer is what a server of the demo said.
type answer struct {
	name   string
	client netip.AddrPort
}

func parseAnswer(text string) (answer, error) {
	var a answer
	var client string
	if _, err := fmt.Sscanf(text, "%s you are %s", &a.name, &client); err != nil {
		return a, fmt.Errorf("%q is no answer of the demo's: %w", text, err)
	}
	var err error
	a.client, err = netip.ParseAddrPort(client)
	a.name = a.name[:len(a.name)-1] // the colon
	return a, err
}

// serve starts a server on a machine and waits until it listens.
func serve(ctx context.Context, on *lab.Node, at netip.AddrPort) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := on.Start(ctx, "web", []string{self, "serve", "--at=" + at.String(), "--name=" + on.Name}, nil)
	if err != nil {
		return err
	}
	return lab.Eventually(ctx, patience, func(ctx context.Context) error {
		if !p.Running() {
			return errors.New(p.Log(1000))
		}
		conn, err := on.Dial(ctx, "tcp", at)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
