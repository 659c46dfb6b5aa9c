package testservers

import (
	"fmt"
	"os/exec"
)

// local runs servers as processes of this machine.
type local struct{}

func openLocal(p program, _ []int) (machine, error) {
	if _, err := exec.LookPath(p.binary); err != nil {
		return nil, fmt.Errorf("this machine: %w", err)
	}
	return local{}, nil
}

// runHere runs a command in an empty directory until it goes or the script's
// input ends. Ctrl-C reaches the shell as well, and what it prints at the end finds
// no reader: it cleans up all the same.
const runHere = `
trap '' HUP INT PIPE TERM
dir=$(mktemp -d) && cd "$dir" || exit
exec 3<&0
"$@" 3<&- </dev/null & server=$!
{ read -r _; kill -9 $server; } <&3 & watch=$!
wait $server
kill -9 $watch
cd / && rm -rf "$dir"
`

func (local) start(command ...string) (*keeper, error) { return keep(runHere, command...) }

func (local) bind() string { return "127.0.0.1" }

func (local) end() {}
