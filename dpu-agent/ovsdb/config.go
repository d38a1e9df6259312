// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
)

// Config says which database to follow and which of its rows and columns.
type Config struct {
	// Endpoint is where the server listens, as in ovsdb(7): unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT. Several,
	// separated by commas, are tried in turn.
	Endpoint string
	// TLS is the configuration of ssl endpoints.
	TLS *tls.Config
	// Database is the name of the database, for example Open_vSwitch.
	Database string
	// Root is the table of Tables that has a row in every database that is in use, for example Open_vSwitch or
	// NB_Global. Without one the database is not filled yet, or its copy is broken.
	Root string
	// Tables has a pointer to an empty row struct for each table to follow. Fields are tagged with their column,
	// `ovsdb:"name"`; one must be a string for _uuid. Only these columns are monitored. A column that the server's
	// schema lacks, or has with another type, ends the connection, unless its field is tagged `optional:"true"`:
	// then it is left out and the field stays zero. A table whose columns are all optional may be absent.
	Tables map[string]any
	// Where has, for tables of which not every row is wanted, what a row must match at least one of. Rows that do not
	// are never sent, as if they did not exist (monitor_cond in ovsdb-server(7)).
	Where map[string][]Condition
	// Logger gets the changes of the connection.
	Logger *slog.Logger

	// Timeout bounds connecting, the first monitor and each transaction; default 10 s.
	Timeout time.Duration
	// ProbeInterval is how often the server is asked for a sign of life, ProbeTimeout how long it may take to give one;
	// default 10 s and 5 s.
	ProbeInterval, ProbeTimeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.ProbeInterval = cmp.Or(c.ProbeInterval, 10*time.Second)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	if c.Tables[c.Root] == nil {
		return fmt.Errorf("follow database %s: no row struct for its root table %q", c.Database, c.Root)
	}
	for table := range c.Where {
		if c.Tables[table] == nil {
			return fmt.Errorf("follow database %s: a condition for table %q, which is not followed", c.Database, table)
		}
	}
	for _, endpoint := range c.endpoints() {
		if err := checkEndpoint(endpoint, c.TLS); err != nil {
			return fmt.Errorf("OVSDB endpoint %q: %w", endpoint, err)
		}
	}
	return nil
}

func (c Config) endpoints() []string { return strings.Split(c.Endpoint, ",") }

func checkEndpoint(endpoint string, tls *tls.Config) error {
	method, address, _ := strings.Cut(endpoint, ":")
	switch method {
	case "unix":
		if !strings.HasPrefix(address, "/") {
			return errors.New("must be unix: and an absolute path")
		}
		return nil
	case "ssl":
		if tls == nil {
			return errors.New("ssl needs a certificate, a private key and a CA certificate")
		}
	case "tcp":
	default:
		return errors.New("the method must be unix, tcp or ssl")
	}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return errors.New("must be HOST:PORT after the method")
	}
	return nil
}
