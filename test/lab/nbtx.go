// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// nbSchema says what a version's northbound database has.
type nbSchema struct {
	Tables map[string]struct {
		Columns map[string]json.RawMessage `json:"columns"`
	} `json:"tables"`
}

// has says whether the table has the column.
func (s nbSchema) has(table, column string) bool {
	_, ok := s.Tables[table].Columns[column]
	return ok
}

// uuidRef names a row that is inserted in the same transaction.
type uuidRef string

// columns are a row's values: string, bool, int, []string, []uuidRef and
// map[string]string, for the types of OVSDB.
type columns map[string]any

// transaction collects operations of RFC 7047 on one database.
type transaction struct {
	database string
	ops      []map[string]any
	rows     int
}

// insert adds a row and returns its name within the transaction.
func (t *transaction) insert(table string, row columns) uuidRef {
	t.rows++
	name := fmt.Sprintf("r%d", t.rows)
	t.ops = append(t.ops, map[string]any{"op": "insert", "table": table, "row": row.encode(), "uuid-name": name})
	return uuidRef(name)
}

// attach adds rows to a set column of the row with the name.
func (t *transaction) attach(table, name, column string, rows ...uuidRef) {
	t.ops = append(t.ops,
		// A name that is not there is an error, not an empty change.
		map[string]any{
			"op": "wait", "timeout": 0, "table": table, "where": byName(name),
			"columns": []string{"name"}, "until": "==", "rows": []any{map[string]any{"name": name}},
		},
		map[string]any{
			"op": "mutate", "table": table, "where": byName(name),
			"mutations": []any{[]any{column, "insert", encodeColumn(rows)}},
		})
}

// remove deletes all rows of a table whose external_ids hold the pair.
func (t *transaction) remove(table, key, value string) {
	where := []any{[]any{"external_ids", "includes", encodeColumn(map[string]string{key: value})}}
	t.ops = append(t.ops, map[string]any{"op": "delete", "table": table, "where": where})
}

func byName(name string) []any { return []any{[]any{"name", "==", name}} }

func (c columns) encode() map[string]any {
	row := make(map[string]any, len(c))
	for name, v := range c {
		row[name] = encodeColumn(v)
	}
	return row
}

// encodeColumn gives a value the form that RFC 7047 section 5.1 prescribes.
func encodeColumn(v any) any {
	switch v := v.(type) {
	case []string:
		return encodeSet(v, func(s string) any { return s })
	case []uuidRef:
		return encodeSet(v, func(r uuidRef) any { return []any{"named-uuid", string(r)} })
	case map[string]string:
		pairs := make([]any, 0, len(v))
		for _, key := range sortedKeys(v) {
			pairs = append(pairs, []any{key, v[key]})
		}
		return []any{"map", pairs}
	}
	return v
}

func encodeSet[T any](set []T, encode func(T) any) any {
	out := make([]any, len(set))
	for i, v := range set {
		out[i] = encode(v)
	}
	return []any{"set", out}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// commit carries out the transaction on an endpoint, all of it or nothing.
func (t *transaction) commit(ctx context.Context, o *OVS, endpoint string) error {
	ops := []any{t.database}
	for _, op := range t.ops {
		ops = append(ops, op)
	}
	request, err := json.Marshal(ops)
	if err != nil {
		return fmt.Errorf("encode transaction: %w", err)
	}
	out, err := o.command(ctx, "ovsdb-client", "--timeout=30", "transact", endpoint, string(request))
	if err != nil {
		return fmt.Errorf("change %s: %w", t.database, err)
	}
	var results []struct {
		Error   string `json:"error"`
		Details string `json:"details"`
	}
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		return fmt.Errorf("read the answer of %s to a transaction: %w: %s", t.database, err, strings.TrimSpace(out))
	}
	for i, r := range results {
		if r.Error == "" {
			continue
		}
		var op any
		if i < len(t.ops) {
			op = t.ops[i]
		}
		return fmt.Errorf("change %s: %s: %s, by %v", t.database, r.Error, r.Details, op)
	}
	return nil
}
