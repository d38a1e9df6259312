// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/push"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/spf13/cobra"
)

func pushCommand(f *flags) *cobra.Command {
	var pusher push.Pusher
	var dir string
	command := &cobra.Command{
		Use:   "push --registry HOST[:PORT]",
		Short: "Push the images that were built to a registry",
		Long: `Pushes the multi-platform image of each agent. The registry goes before repository and tag, which stay:
registry.example.com/nvke/ovn-uplink-host-agent:<first 12 characters of the commit>. Credentials are those
of 'docker login'.`,
		Example: `  release push --registry registry.example.com

  # a registry without TLS on this machine
  release push --registry 127.0.0.1:5000 --insecure`,
		Args: agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pusher.Registry == "" {
				return agent.Usagef("--registry: say where to push, for example registry.example.com:5000")
			}
			checkout, err := f.checkout(cmd)
			if err != nil {
				return err
			}
			pusher.Progress = cmd.OutOrStdout()
			return pusher.Push(cmd.Context(), cmp.Or(dir, imagesDir(checkout)))
		},
	}
	command.Flags().StringVar(&pusher.Registry, "registry", "", "`host[:port]` of the registry")
	command.Flags().BoolVar(&pusher.Insecure, "insecure", false, "push without TLS")
	command.Flags().StringVar(&dir, "images", "", "`directory` with what 'images' built; default: dist/images in the checkout")
	return command
}
