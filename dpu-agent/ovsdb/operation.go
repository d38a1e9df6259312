// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"errors"
	"fmt"

	"github.com/ovn-org/libovsdb/ovsdb"
)

// What transactions are made of (RFC 7047, sections 4.1.3 and 5).
type (
	// Operation is one step of a transaction.
	Operation = ovsdb.Operation
	// Result is what became of an Operation.
	Result = ovsdb.OperationResult
	// Condition selects rows.
	Condition = ovsdb.Condition
	// Mutation changes a column without knowing all of it.
	Mutation = ovsdb.Mutation
	// Row holds values by column.
	Row = ovsdb.Row
	// UUID is the value of a reference to a row.
	UUID = ovsdb.UUID
	// Set is the value of a column that holds several.
	Set = ovsdb.OvsSet
	// Map is the value of a column of key-value pairs.
	Map = ovsdb.OvsMap
)

// ErrChanged is the error of a transaction whose wait operation found another value than expected: somebody else
// wrote in between. Nothing was written; read again and decide again.
var ErrChanged = errors.New("the database holds another value than the one the transaction was made for")

// check turns the results of a transaction into an error that names every operation that failed.
func check(results []Result, operations []Operation) error {
	failed, err := ovsdb.CheckOperationResults(results, operations)
	if err == nil {
		return nil
	}
	errs := make([]error, 0, len(failed)+1)
	for _, f := range failed {
		op := f.Operation()
		if _, timedOut := f.(*ovsdb.TimedOut); timedOut && op != nil && op.Op == ovsdb.OperationWait {
			return ErrChanged
		}
		if op != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", op.Op, op.Table, f))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
