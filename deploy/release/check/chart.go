// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// chart is what a chart says of itself and of the images.
type chart struct {
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
	// tags are those in its values, each once.
	tags []string
}

// checkCharts checks the chart in the source, whose values need no tag, and the exported one, whose values need one.
func (c *checker) checkCharts() error {
	if err := c.chartIn("chart deploy/host/chart", c.path("deploy", "host", "chart"), false); err != nil {
		return err
	}
	exported := c.path("dist", "chart")
	if _, err := os.Stat(filepath.Join(exported, "Chart.yaml")); err != nil {
		below, err := filepath.Glob(filepath.Join(exported, "*", "Chart.yaml"))
		if err == nil && len(below) == 1 {
			exported = filepath.Dir(below[0])
		}
	}
	return c.chartIn("chart dist/chart", exported, true)
}

func (c *checker) chartIn(what, dir string, tagged bool) error {
	files := map[string][]byte{}
	for _, name := range []string{"Chart.yaml", "values.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			c.problem("%s is missing: there is no %s", what, filepath.Join(dir, name))
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
		files[name] = text
	}
	return c.chart(what, files, tagged)
}

// chart checks a chart of which the files Chart.yaml and those with values are given.
func (c *checker) chart(what string, files map[string][]byte, tagged bool) error {
	var read chart
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Base(name) == "Chart.yaml" {
			if err := yaml.Unmarshal(files[name], &read); err != nil {
				return fmt.Errorf("read %s of %s: %w", name, what, err)
			}
			continue
		}
		var values any
		if err := yaml.Unmarshal(files[name], &values); err != nil {
			return fmt.Errorf("read %s of %s: %w", name, what, err)
		}
		read.collect(values)
	}
	slices.Sort(read.tags)
	read.tags = slices.Compact(read.tags)
	if len(read.tags) == 0 {
		c.item(what, read.Version, "")
		if tagged {
			c.problem("%s names no tag for the images, want %s", what, c.release.commit[:12])
		}
	}
	for _, tag := range read.tags {
		c.item(what, read.Version, tag)
	}
	if read.AppVersion != read.Version {
		c.problem("%s has version %s and appVersion %s", what, read.Version, read.AppVersion)
	}
	return nil
}

// collect finds the tags in values, wherever they are.
func (r *chart) collect(values any) {
	switch values := values.(type) {
	case map[string]any:
		for key, value := range values {
			if tag, is := value.(string); is && strings.EqualFold(key, "tag") && tag != "" {
				r.tags = append(r.tags, tag)
			}
			r.collect(value)
		}
	case []any:
		for _, value := range values {
			r.collect(value)
		}
	}
}
