package testservers

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// local runs servers as processes of this machine.
type local struct{ program program }

func openLocal(p program, _ []int) (machine, error) {
	if _, err := p.path(); err != nil {
		return nil, fmt.Errorf("this machine: %w", err)
	}
	return local{p}, nil
}

// path returns where the program is on this machine.
func (p program) path() (string, error) {
	path, err := exec.LookPath(p.binary)
	if found, _ := filepath.Glob(p.elsewhere); err != nil && len(found) > 0 {
		return found[len(found)-1], nil
	}
	return path, err
}

// runHere runs a command in an empty directory until the command ends or the script's input does.
// Its first argument is the signal that is then sent to the command, repeatedly until the command
// has ended, because the server may start only after another command, such as initdb. The script
// also cleans up after Ctrl-C, which the shell gets too, and if nothing reads its output any more.
const runHere = `
trap '' HUP INT PIPE TERM
signal=$1 && shift
dir=$(mktemp -d) && cd "$dir" || exit
exec 3<&0
"$@" 3<&- </dev/null & server=$!
{ read -r _; while kill -s "$signal" $server; do sleep 0.1; done; } <&3 >/dev/null 2>&1 & watch=$!
wait $server
kill -9 $watch
cd / && rm -rf "$dir"
`

func (l local) start(command ...string) (*supervisor, error) {
	cmd := shell(runHere, append([]string{l.program.signal}, command...)...)
	if l.program.unprivileged {
		if err := unprivileged(cmd); err != nil {
			return nil, err
		}
	}
	return supervise(cmd)
}

func (local) bind() string { return "127.0.0.1" }

func (local) end() {}
