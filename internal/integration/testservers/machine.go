package testservers

import (
	"errors"
	"fmt"
	"os"
)

// program is the program of a server, and a Docker image that has it, if there is one.
type program struct {
	binary, repository, tag string
	// elsewhere is a pattern of paths of the program, for machines where PATH does not have it.
	elsewhere string
	// signal ends a server at once, with all that it started.
	signal string
	// unprivileged is set if the program refuses to run as root.
	unprivileged bool
	// get is the advice for a person on how to get the program.
	get string
}

// machine is where servers run. They reach each other, and tests reach them, on
// ports of 127.0.0.1.
type machine interface {
	// start runs a command until its supervisor ends.
	start(command ...string) (*supervisor, error)
	// bind is the address that servers listen on.
	bind() string
	// end ends what the machine itself has started. It is called after all servers have ended.
	end()
}

// errNowhere means that there is no machine to run a program.
var errNowhere = errors.New("there is no way to run a server here")

// open returns the machine for a program that SKEIN_TEST_VIA names, or else the first that is
// available, or errNowhere. Its servers may listen on the given ports.
func open(p program, ports []int) (machine, error) {
	via := os.Getenv("SKEIN_TEST_VIA")
	var problems []error

	for _, way := range []struct {
		name string
		open func(program, []int) (machine, error)
	}{
		{"local", openLocal},
		{"docker", openDocker},
	} {
		if via != "" && via != way.name {
			continue
		}

		m, err := way.open(p, ports)
		if err == nil {
			return m, nil
		}
		problems = append(problems, err)
	}

	if len(problems) == 0 {
		return nil, fmt.Errorf("SKEIN_TEST_VIA is %q; it may be local, docker or empty", via)
	}
	return nil, fmt.Errorf("%w: %w\n%s", errNowhere, errors.Join(problems...), p.get)
}
