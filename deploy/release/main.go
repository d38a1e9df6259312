// SPDX-License-Identifier: Apache-2.0

// Command release builds what is shipped of a commit: images, and the locks that say what came out.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/spf13/cobra"
)

func main() {
	// What is half-written is removed when a build is interrupted; a second signal ends it at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	root := command()
	root.SetContext(ctx)
	agent.Main(root)
}

// flags are what all commands have.
type flags struct{ root string }

func command() *cobra.Command {
	f := &flags{}
	root := &cobra.Command{
		Use:   "release",
		Short: "Build, push, lock and check a release of ovn-uplink",
		Args:  agent.NoArgs,
	}
	root.PersistentFlags().StringVar(&f.root, "source", ".", "`directory` of the checkout")
	root.AddCommand(imagesCommand(f), pushCommand(f), lockCommand(f), verifyLockCommand(f), sourceCommand(f), pinsCommand(f), checkCommand(f))
	return root
}

// checkout opens the checkout that the command is about.
func (f *flags) checkout(cmd *cobra.Command) (source.Checkout, error) {
	return source.Open(cmd.Context(), f.root)
}

func cache(progress io.Writer) (debian.Cache, error) {
	dir, err := debian.DefaultCacheDir()
	return debian.Cache{Dir: dir, Progress: progress}, err
}

func imagesDir(checkout source.Checkout) string {
	return filepath.Join(checkout.Root, "dist", "images")
}

func builder(checkout source.Checkout, progress io.Writer) (dist.Builder, error) {
	packages, err := cache(progress)
	return dist.Builder{Checkout: checkout, Cache: packages, Progress: progress}, err
}
