// Judges a history of the key-value store by Porcupine, apart from impl/net/history.py and its search.
//
// Standard input: one JSON object a line, an operation as its client saw it; bytes are hexadecimal, null is an absent
// value, and no "returned" means no answer. Standard output: ok, violation or inconclusive. Exit code 2: bad input.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Client   int     `json:"client"`
	Kind     string  `json:"kind"`
	Key      string  `json:"key"`
	Called   int64   `json:"called"`
	Returned *int64  `json:"returned"`
	Argument *string `json:"argument"`
	Expected *string `json:"expected"`
	Value    *string `json:"value"`
	Success  bool    `json:"success"`
}

// The value of one key; nothing is known of its address.
type state struct {
	present bool
	value   string
}

func of(value *string) state {
	if value == nil {
		return state{}
	}
	return state{true, *value}
}

// step says whether an operation may have had its answer on a key in a state, and the state after it.
func step(before state, op operation) (bool, state) {
	answered := op.Returned != nil
	switch op.Kind {
	case "get":
		return !answered || of(op.Value) == before, before
	case "put":
		return true, of(op.Argument)
	case "append":
		return true, state{true, before.value + *op.Argument}
	case "delete":
		return !answered || op.Success == before.present, state{}
	default: // cas
		equal := before == of(op.Expected)
		if answered && op.Success != equal {
			return false, before
		}
		if equal {
			return true, of(op.Argument)
		}
		return true, before
	}
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(operation).Key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() interface{} { return state{} },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		return step(before.(state), input.(operation))
	},
}

func read() ([]porcupine.Operation, error) {
	var history []porcupine.Operation
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for number := 1; lines.Scan(); number++ {
		var op operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		writes := op.Kind == "put" || op.Kind == "append" || op.Kind == "cas"
		if !writes && op.Kind != "get" && op.Kind != "delete" || writes && op.Argument == nil {
			return nil, fmt.Errorf("line %d: %q is no operation, or its argument is missing", number, op.Kind)
		}
		returned := int64(math.MaxInt64)
		if op.Returned != nil {
			returned = *op.Returned
		}
		history = append(history, porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Called, Return: returned})
	}
	return history, lines.Err()
}

func main() {
	history, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	verdicts := map[porcupine.CheckResult]string{
		porcupine.Ok: "ok", porcupine.Illegal: "violation", porcupine.Unknown: "inconclusive",
	}
	fmt.Println(verdicts[porcupine.CheckOperationsTimeout(model, history, 3*time.Minute)])
}
